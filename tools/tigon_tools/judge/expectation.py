"""What a case expects: values for it, what the reference makes of them in float64, and how far eager is off."""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from tigon_tools.judge.cases import Case, Plan, argument_shape, branch_points, scalar_values
from tigon_tools.judge.compare import Expected
from tigon_tools.judge.rounding import Flushed, LastBitsMoved, last_bit_moved
from tigon_tools.judge.tolerance import FINER, SAMPLE, EagerError, eager_error, slack_of, term_error
from tigon_tools.judge.truth import Outcome, run_reference
from tigon_tools.judge.values import argument_values, upstream_values
from tigon_tools.trace.operation import TracedOperation
from tigon_tools.trace.reference import LoadedReference
from tigon_tools.trace.tier import classify

GRADIENT = "the gradient of "
"""In front of an input's name."""

MOVES = 8
"""Random moves. Four roundings of equal weight cancel each other in 3 of 8 draws, so in all draws 4 times in 10,000."""

Asked = tuple[list[str], list[torch.Tensor], list[int]]
"""Inputs that want a gradient, upstream gradients, and the positions of the outputs these are for."""

MADE_TO_FAIL = ("large", "branches")
"""Values where eager itself may overflow or take another branch than float64."""


@dataclass(frozen=True)
class Rounded:
    """The truth with rounding put in.

    moved: for inputs and intermediates moved by their last bit, up and down at random, and by `FINER` of it.
    flushed: where intermediates below the normal float32 numbers are zero.
    """

    moved: tuple[tuple[Outcome, Outcome], ...]
    flushed: Outcome


@dataclass(frozen=True)
class Expectation:
    """One case's values and right answers.

    values: of all arguments by name. wants: inputs that a gradient is asked for.
    upstream: for the differentiable outputs of `backed`, their positions among the outputs.
    rounded: what float32 may make of it; many runs, made when first asked for.
    """

    values: dict[str, Any]
    wants: list[str]
    upstream: list[torch.Tensor]
    backed: list[int]
    truth: Outcome
    eager: Outcome
    rounded: Callable[[], Rounded]

    def tainted(self, shape: tuple[int, ...]) -> torch.Tensor:
        """Elements of a result of this shape for which an input at the same place is NaN or infinite."""
        found = torch.zeros(shape, dtype=torch.bool)
        for value in self.values.values():
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                with contextlib.suppress(RuntimeError):  # of a shape that has no place in the result
                    found |= ~torch.isfinite(value).expand(shape)
        return found


def _slack(
    made: Expectation, truth: torch.Tensor, results: Callable[[Outcome], Any], key: int | str, terms: float = 0.0
) -> torch.Tensor:
    """What float32 leaves open about one result; `terms` on top. A gradient of one float64 run is there in all."""
    rounded = made.rounded()
    pairs = [(results(whole)[key], results(part)[key]) for whole, part in rounded.moved]
    return slack_of(truth, pairs, results(rounded.flushed)[key]) + terms


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
        asked = (wants, upstream, backed)
        truth = run_reference(self.loaded, values, *asked, exact=True)
        eager = run_reference(self.loaded, values, *asked, exact=False)
        rounded = functools.cache(lambda: self._rounded(values, asked))
        return Expectation(values, wants, upstream, backed, truth, eager, rounded)

    def _rounded(self, values: dict[str, Any], asked: Asked) -> Rounded:
        moved = tuple((self._moved(values, s, 1.0, asked), self._moved(values, s, FINER, asked)) for s in range(MOVES))
        return Rounded(moved, run_reference(self.loaded, values, *asked, exact=True, rounding=Flushed()))

    def _moved(self, values: dict[str, Any], seed: int, share: float, asked: Asked) -> Outcome:
        inputs = {
            name: last_bit_moved(value.double(), seed * 31 + position, share)
            if isinstance(value, torch.Tensor) and value.is_floating_point()
            else value
            for position, (name, value) in enumerate(values.items())
        }
        # A thousand operations apart, so that no direction is drawn twice.
        rounding = LastBitsMoved(1000 * (seed + 1), share)
        return run_reference(self.loaded, inputs, *asked, exact=True, rounding=rounding)

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
            shape = argument_shape(argument.shape, argument.dtype, self.operation.iteration_space, case.space)
            values[argument.name] = argument_values(argument, shape, case, position, branches)
            position += 1
        return values

    def output_name(self, position: int) -> str:
        return f"output {self.operation.outputs[position].symbol}"

    def of_outputs(self, case: Case, made: Expectation) -> Iterator[Expected]:
        """What each output should be."""
        others = {self.output_name(i): t for i, t in enumerate(made.truth.outputs)}
        for position, (truth, eager) in enumerate(zip(made.truth.outputs, made.eager.outputs, strict=True)):
            slack = functools.partial(_slack, made, truth, operator.attrgetter("outputs"), position)
            yield self._expected(case, made, self.output_name(position), truth, eager, slack, others)

    def of_gradients(self, case: Case, made: Expectation) -> Iterator[tuple[str, Expected]]:
        """What the gradient of each input should be, by the input's name; where there is one."""
        others = {GRADIENT + n: g for n, g in made.truth.gradients.items() if g is not None}
        for name, truth in made.truth.gradients.items():
            eager = made.eager.gradients[name]
            if truth is None or eager is None:
                continue
            terms = term_error(made.upstream) if self._reduces else 0.0
            slack = functools.partial(_slack, made, truth, operator.attrgetter("gradients"), name, terms)
            yield name, self._expected(case, made, GRADIENT + name, truth, eager, slack, others)

    def _expected(
        self,
        case: Case,
        made: Expectation,
        name: str,
        truth: torch.Tensor,
        eager: torch.Tensor,
        slack: Callable[[], torch.Tensor],
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
