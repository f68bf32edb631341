"""One case after another: ask the candidate, compare what it hands over, look at the memory it left."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch

from tigon_tools.judge.answer import Answer, same_bits
from tigon_tools.judge.cases import Case
from tigon_tools.judge.compare import Mismatch, compare
from tigon_tools.judge.expectation import GRADIENT, Expectation, Expectations
from tigon_tools.judge.findings import Findings
from tigon_tools.judge.layouts import offset_of, strides_of
from tigon_tools.judge.process import CandidateGone, CandidateProcess
from tigon_tools.judge.values import layout_of, upstream_strides

LONGEST_ROW = 65536
"""Elements of the longest row that Liger's own kernels take: `calculate_settings` refuses longer ones."""


@dataclass
class Examination:
    """overwrites: inputs that the backward may use as memory for gradients.

    crashes: how often the candidate's process died.
    """

    process: CandidateProcess
    expectations: Expectations
    overwrites: tuple[str, ...] = ()
    kernels: bool = False
    findings: Findings = field(default_factory=Findings)
    crashes: int = 0

    def case(self, case: Case, seconds: float) -> None:
        """Run and compare one case; `seconds` is what the candidate has for it."""
        try:
            made = self.expectations.of(case)
        except Exception as problem:  # the reference decides what shapes it takes
            self.findings.left_out(case, problem)
            return
        self.findings.cases += 1
        answer = self._ask(case, made, seconds)
        if answer is None:
            return
        comparable = self._compare(case, answer, made)
        self._check_memory(case, answer, made)
        if self.kernels:
            self._check_launches(case, answer, made)
        if comparable and case.why == "odd":
            self._again(case, answer, made, seconds)

    def _ask(self, case: Case, made: Expectation, seconds: float, *, reuse: bool = False) -> Answer | None:
        """Run the candidate; None where it gave no answer, which is a finding then."""
        header, names, tensors = self._question(case, made)
        try:
            answer, results = self.process.ask({**header, "reuse": reuse}, [*tensors, *made.upstream], seconds)
        except CandidateGone as gone:
            self.crashes += 1
            self.findings.failed("crash", f"the candidate's process ended: {gone}", case)
            return None
        if "error" in answer:
            self._raised(case, str(answer["error"]))
            return None
        try:
            return Answer.read(answer, results, made.wants, names)
        except (KeyError, StopIteration, TypeError, ValueError) as problem:
            self.findings.failed("run", f"the candidate's process sent an answer that makes no sense: {problem}", case)
            return None

    def _question(self, case: Case, made: Expectation) -> tuple[dict[str, Any], list[str], list[torch.Tensor]]:
        inputs: list[dict[str, Any]] = []
        names: list[str] = []
        tensors: list[torch.Tensor] = []
        for argument in self.expectations.operation.arguments:
            value = made.values[argument.name]
            if argument.kind == "static":
                continue
            described: dict[str, Any] = {"kind": argument.kind, "name": argument.name}
            if argument.kind == "scalar":
                inputs.append({**described, "value": value})
                continue
            layout = layout_of(case, len(tensors))
            described["stride"] = strides_of(tuple(value.shape), layout)
            described["offset"] = offset_of(layout)
            described["requires_grad"] = argument.name in made.wants
            inputs.append(described)
            names.append(argument.name)
            tensors.append(value)
        upstream = [
            {"output": i, "stride": upstream_strides(tuple(g.shape), case)}
            for i, g in zip(made.backed, made.upstream, strict=True)
        ]
        return {"inputs": inputs, "upstream": upstream}, names, tensors

    def _raised(self, case: Case, error: str) -> None:
        if case.space and case.space[-1] > LONGEST_ROW:
            # A refusal is no wrong answer, and Liger's own kernels refuse these.
            self.findings.flagged("long_rows", f"rows longer than {LONGEST_ROW} elements are refused: {error}", case)
        else:
            self.findings.failed("run", f"the candidate fails: {error}", case)

    def _compare(self, case: Case, answer: Answer, made: Expectation) -> bool:
        """False where the candidate returns another number of tensors."""
        wanted = len(made.truth.outputs)
        if len(answer.outputs) != wanted:
            what = f"the candidate returns {len(answer.outputs)} tensors, and the reference {wanted}"
            self.findings.failed("forward", what, case)
            return False
        for check, problem in self._mismatches(case, answer, made):
            self.findings.note(check, problem, case)
        return True

    def _mismatches(self, case: Case, answer: Answer, made: Expectation) -> list[tuple[str, Mismatch | None]]:
        """A check and what is wrong, for each output and gradient."""
        found: list[tuple[str, Mismatch | None]] = []
        for output, expected in zip(answer.outputs, self.expectations.of_outputs(case, made), strict=True):
            found.append(("forward", compare(output, expected)))
        for name, expected in self.expectations.of_gradients(case, made):
            gradient = answer.gradients[name]
            if gradient is not None:
                found.append(("gradient", compare(gradient, expected)))
            elif bool((expected.truth != 0).any()):
                found.append(("gradient", Mismatch(f"{GRADIENT}{name} is missing (None)", float("inf"))))
        return found

    def _again(self, case: Case, first: Answer, made: Expectation, seconds: float) -> None:
        """The same inputs give the same bits; other values in the same memory give other results."""
        second = self._ask(case, made, seconds, reuse=True)
        if second is None:
            return
        pairs = list(zip(first.results, second.results, strict=False))
        same = len(first.results) == len(second.results) and all(same_bits(x, y) for x, y in pairs)
        self.findings.note("repeat", None if same else "the same inputs give other results on a second call", case)
        other = replace(case, seed=case.seed + 5003)
        changed = self.expectations.of(other)
        third = self._ask(other, changed, seconds, reuse=True)
        if third is None:
            return
        wrong = any(problem is not None for _, problem in self._mismatches(other, third, changed))
        stale = wrong and any(x.numel() and same_bits(x, y) for x, y in zip(first.results, third.results, strict=False))
        self.findings.note(
            "reuse", "new values in the same memory give the old results: something is cached" if stale else None, other
        )

    def _check_memory(self, case: Case, answer: Answer, made: Expectation) -> None:
        self.findings.note("input_modified", self._modified(answer, made), case)
        self.findings.note("out_of_bounds", _overrun(answer), case)
        self.findings.note("alias", "an output shares memory with an input" if answer.aliases else None, case)

    def _check_launches(self, case: Case, answer: Answer, made: Expectation) -> None:
        """The work is a kernel's. Gradients may have been made in the forward already, so no launch is flagged there."""
        forward, backward = answer.launches
        if 0 in case.space:
            return  # nothing to do
        none = "the forward launches no Triton kernel: PyTorch does the work" if forward == 0 else None
        self.findings.note("kernels", none, case)
        if backward == 0 and any(g is not None and g.numel() for g in made.truth.gradients.values()):
            self.findings.flagged("kernels", "the backward launches no Triton kernel", case)

    def _modified(self, answer: Answer, made: Expectation) -> str | None:
        """What of the inputs and upstream gradients is not as it was given."""
        changed = []
        for name, now in answer.inputs.items():
            if name in self.overwrites or same_bits(now, made.values[name]):
                continue
            gradients = [g for g in answer.gradients.values() if g is not None]
            takes_gradient = any(same_bits(now, gradient) for gradient in gradients)
            changed.append(f"{name} (its memory is used for a gradient)" if takes_gradient else name)
        if changed:
            return f"input {', '.join(changed)} is modified"
        if not all(same_bits(x, y) for x, y in zip(answer.upstream, made.upstream, strict=True)):
            return "the upstream gradient is modified by the backward"
        return "an output is modified by the backward" if answer.outputs_change else None


def _overrun(answer: Answer) -> str | None:
    if not answer.overruns:
        return None
    side, count = max(answer.overruns, key=lambda overrun: overrun[1])
    if side == "between the rows":
        return (
            f"writes {count} elements between the rows of a strided tensor: its stride is ignored, or a mask is missing"
        )
    return f"writes up to {count} elements {side} of a tensor: a mask is missing or wrong"
