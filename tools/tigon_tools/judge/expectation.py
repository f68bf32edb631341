"""What a case expects: values for it, what the reference makes of them in float64, and how far eager is off."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from tigon_tools.judge.cases import Case, Plan, argument_shape, branch_points, scalar_values
from tigon_tools.judge.compare import Expected
from tigon_tools.judge.tolerance import SAMPLE, EagerError, eager_error, last_bit_moved, slack_of, term_error
from tigon_tools.judge.truth import Outcome, run_reference
from tigon_tools.judge.values import argument_values, upstream_values
from tigon_tools.trace.operation import TracedOperation
from tigon_tools.trace.reference import LoadedReference
from tigon_tools.trace.tier import classify

GRADIENT = "the gradient of "
"""In front of an input's name."""

MOVES = 2
"""Two random moves: that both cancel where several inputs meet is unlikely."""

MADE_TO_FAIL = ("large", "branches")
"""Values where eager itself may overflow or take another branch than float64."""


@dataclass(frozen=True)
class Expectation:
    """One case's values and right answers.

    values: of all arguments by name. wants: inputs that a gradient is asked for.
    moved: the truth for inputs moved by their last bit, up and down at random.
    upstream: for the differentiable outputs of `backed`, their positions among the outputs.
    """

    values: dict[str, Any]
    wants: list[str]
    upstream: list[torch.Tensor]
    backed: list[int]
    truth: Outcome
    eager: Outcome
    moved: tuple[Outcome, ...]

    def tainted(self, shape: tuple[int, ...]) -> torch.Tensor:
        """Elements of a result of this shape for which an input at the same place is NaN or infinite."""
        found = torch.zeros(shape, dtype=torch.bool)
        for value in self.values.values():
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                with contextlib.suppress(RuntimeError):  # of a shape that has no place in the result
                    found |= ~torch.isfinite(value).expand(shape)
        return found


@dataclass
class Expectations:
    """Makes them for one reference; keeps eager's error for each kind of case."""

    loaded: LoadedReference
    operation: TracedOperation
    _errors: dict[tuple[str, str, str, str], EagerError] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._reduces = classify(self.operation)[0] > 1

    def of(self, case: Case) -> Expectation:
        """Run the reference on the case.

        Raises:
            Whatever the reference raises on its shapes.
        """
        values = self._values(case)
        backed = [i for i, o in enumerate(self.operation.outputs) if o.differentiable][: case.backed]
        outputs = run_reference(self.loaded, values, (), None, (), exact=False).outputs
        upstream = [upstream_values(tuple(outputs[i].shape), outputs[i].dtype, case, i) for i in backed]
        names = [a.name for a in self.operation.arguments if a.requires_grad]
        wants = names if case.wants is None else [n for n in names if n in case.wants]
        truth = run_reference(self.loaded, values, wants, upstream, backed, exact=True)
        eager = run_reference(self.loaded, values, wants, upstream, backed, exact=False)
        moved = tuple(
            run_reference(self.loaded, self._moved(values, seed), wants, upstream, backed, exact=True)
            for seed in range(MOVES)
        )
        return Expectation(values, wants, upstream, backed, truth, eager, moved)

    def _moved(self, values: dict[str, Any], seed: int) -> dict[str, Any]:
        return {
            name: last_bit_moved(value.double(), seed * 31 + position)
            if isinstance(value, torch.Tensor) and value.is_floating_point()
            else value
            for position, (name, value) in enumerate(values.items())
        }

    def _values(self, case: Case) -> dict[str, Any]:
        traced = {s.name: s.value for s in self.loaded.arguments}
        scalars = scalar_values(self.operation, traced, case.settings)
        branches = branch_points(self.operation, scalars)
        values: dict[str, Any] = {}
        position = 0
        for argument in self.operation.arguments:
            if argument.kind in ("scalar", "static"):
                values[argument.name] = scalars.get(argument.name, traced[argument.name])
                continue
            assert argument.shape is not None
            shape = argument_shape(argument.shape, self.operation.iteration_space, case.space)
            values[argument.name] = argument_values(argument, shape, case, position, branches)
            position += 1
        return values

    def output_name(self, position: int) -> str:
        return f"output {self.operation.outputs[position].symbol}"

    def of_outputs(self, case: Case, made: Expectation) -> Iterator[Expected]:
        """What each output should be."""
        others = {self.output_name(i): t for i, t in enumerate(made.truth.outputs)}
        for position, (truth, eager) in enumerate(zip(made.truth.outputs, made.eager.outputs, strict=True)):
            slack = slack_of(truth, [m.outputs[position] for m in made.moved])
            yield self._expected(case, made, self.output_name(position), truth, eager, slack, others)

    def of_gradients(self, case: Case, made: Expectation) -> Iterator[tuple[str, Expected]]:
        """What the gradient of each input should be, by the input's name; where there is one."""
        others = {GRADIENT + n: g for n, g in made.truth.gradients.items() if g is not None}
        for name, truth in made.truth.gradients.items():
            eager = made.eager.gradients[name]
            if truth is None or eager is None:
                continue
            slack = slack_of(truth, [g for m in made.moved if (g := m.gradients[name]) is not None])
            if self._reduces:
                slack = slack + term_error(made.upstream)
            yield name, self._expected(case, made, GRADIENT + name, truth, eager, slack, others)

    def _expected(
        self,
        case: Case,
        made: Expectation,
        name: str,
        truth: torch.Tensor,
        eager: torch.Tensor,
        slack: torch.Tensor,
        others: dict[str, torch.Tensor],
    ) -> Expected:
        skips = case.values in MADE_TO_FAIL
        error = self._error(case, name) | eager_error(eager, truth, skips_where_off=skips)
        tainted = made.tainted(tuple(truth.shape)) if case.values == "special" else None
        return Expected(name, truth, eager, error, slack, others, skips, tainted)

    def _error(self, case: Case, name: str) -> EagerError:
        """Eager's error on a large sample of the case's kind."""
        if case.values == "special":
            return EagerError()
        kind = (case.dtype, case.values, case.settings)
        if (*kind, name) not in self._errors:
            self._sample(case)
        return self._errors.setdefault((*kind, name), EagerError())

    def _sample(self, case: Case) -> None:
        space = Plan(self.operation, (case.dtype,), 0).shape(*SAMPLE)
        sample = Case(space, case.dtype, values=case.values, settings=case.settings, seed=case.seed + 7919)
        try:
            made = self.of(sample)
        except Exception:  # a reference with fixed sizes: the case's own error is what there is
            return
        skips = case.values in MADE_TO_FAIL
        pairs = [
            (self.output_name(i), made.truth.outputs[i], made.eager.outputs[i]) for i in range(len(made.truth.outputs))
        ]
        for name, gradient in made.truth.gradients.items():
            own = made.eager.gradients[name]
            if gradient is not None and own is not None:
                pairs.append((GRADIENT + name, gradient, own))
        for name, truth, eager in pairs:
            kind = (case.dtype, case.values, case.settings, name)
            self._errors[kind] = eager_error(eager, truth, skips_where_off=skips)
