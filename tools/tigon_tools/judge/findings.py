"""Gather what was found: one finding a check, with its worst case and how many failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tigon_tools.judge.cases import Case
from tigon_tools.judge.compare import Mismatch
from tigon_tools.judge.pattern import is_plain, pattern_of
from tigon_tools.schema.judge import Finding, JudgeResult

_MEANING = {
    "forward": "the outputs agree with the reference in float64",
    "gradient": "the gradients agree with the reference in float64",
    "input_modified": "inputs and upstream gradients are unchanged",
    "out_of_bounds": "nothing is written outside the tensors",
    "kernels": "the forward launches Triton kernels",
    "alias": "no output shares memory with an input",
    "repeat": "the same inputs give the same bits",
    "reuse": "new values in the same memory give new results",
}


_OF_VALUES = ("unwritten",)
"""Failures of comparisons that pass as "forward" or "gradient"."""


_STATUSES = ("failed", "flagged", "passed", "skipped")

_CAUSES = frozenset({"load", "run", "crash", "input_modified", "out_of_bounds", "unwritten"})
"""Checks whose failure explains wrong values elsewhere; they are told first."""


@dataclass
class _Seen:
    passed: int = 0
    bad: list[tuple[float, str, Case]] = field(default_factory=list)
    right: list[Case] = field(default_factory=list)


@dataclass
class Findings:
    """cases: how many were run."""

    cases: int = 0
    _checks: dict[str, _Seen] = field(default_factory=dict)
    _flagged: dict[str, tuple[str, Case]] = field(default_factory=dict)
    _plain: list[Finding] = field(default_factory=list)
    _left_out: list[str] = field(default_factory=list)

    def note(self, check: str, problem: Mismatch | str | None, case: Case) -> None:
        """One check on one case.

        Among inputs that are NaN or infinite, one that gets lost is flagged, not failed: Liger's own
        kernels differ from eager there (`tl.maximum` drops NaN), and people rely on neither. So is a number
        where the reference makes NaN of finite inputs: sigmoid may be written so that it survives.
        """
        if isinstance(problem, Mismatch) and (problem.better or (problem.special and case.values == "special")):
            self.flagged(check, f"{problem.what}: NaN or infinity is lost", case)
            return
        if isinstance(problem, Mismatch) and problem.check is not None:
            check = problem.check
        seen = self._checks.setdefault(check, _Seen())
        if problem is None:
            seen.passed += 1
            seen.right.append(case)
        elif isinstance(problem, Mismatch):
            seen.bad.append((problem.excess, problem.what, case))
        else:
            seen.bad.append((0.0, problem, case))

    def flagged(self, check: str, detail: str, case: Case) -> None:
        """Something to look at that is not wrong."""
        self._flagged.setdefault(check, (detail, case))

    def failed(self, check: str, detail: str, case: Case | None = None) -> None:
        """Something that is no comparison."""
        if case is None:
            self._plain.append(Finding(check, "failed", detail))
        else:
            self._checks.setdefault(check, _Seen()).bad.append((float("inf"), detail, case))

    def skipped(self, check: str, detail: str) -> None:
        self._plain.append(Finding(check, "skipped", detail))

    def left_out(self, case: Case, problem: Exception) -> None:
        """A shape that the reference itself does not take."""
        self._left_out.append(f"{case.space} ({type(problem).__name__})")

    def result(self, seconds: float, *, gradients: bool) -> JudgeResult:
        """All findings, worst first.

        gradients: whether the reference has any; then to have compared none is a failure.
        """
        findings = list(self._plain)
        for check, seen in self._checks.items():
            findings.append(self._one(check, seen))
        for check, (detail, case) in self._flagged.items():
            findings.append(Finding(check, "flagged", f"{detail}.", case.label))
        if self._left_out:
            shapes = ", ".join(dict.fromkeys(self._left_out))
            findings.append(Finding("shapes", "skipped", f"the reference does not take {shapes}."))
        if self.cases == 0 and not any(f.status == "failed" for f in findings):
            findings.append(Finding("cases", "failed", "no case could be run, so nothing was shown."))
        elif gradients and "gradient" not in self._checks and not any(f.status == "failed" for f in findings):
            findings.append(
                Finding("gradient", "failed", "no gradient was compared, so nothing was shown of the backward.")
            )
        findings.sort(key=lambda f: (_STATUSES.index(f.status), f.check not in _CAUSES))
        passed = not any(f.status == "failed" for f in findings)
        return JudgeResult(passed, tuple(findings), self.cases, round(seconds, 2))

    def _one(self, check: str, seen: _Seen) -> Finding:
        if not seen.bad:
            return Finding(check, "passed", f"{_MEANING.get(check, check)} ({seen.passed} comparisons).")
        # The plainest failing case says most about the cause; of equals the one that is wrong by most.
        _, what, case = min(seen.bad, key=lambda entry: (_strangeness(entry[2]), -entry[0]))
        failing = [case for _, _, case in seen.bad]
        right = self._right(failing) if check in _OF_VALUES else seen.right
        pattern = pattern_of(failing, right)
        total = len(right) + len(seen.bad)
        many = f" {len(seen.bad)} of {total} comparisons fail." if total > 1 else ""
        return Finding(check, "failed", f"{what}{'; ' if pattern else ''}{pattern}.{many}", case.label)

    def _right(self, failing: Sequence[Case]) -> list[Case]:
        """Comparisons of values that passed on other cases than the failing ones."""
        every = [case for name in ("forward", "gradient") if name in self._checks for case in self._checks[name].right]
        return [case for case in every if case not in failing]


def _strangeness(case: Case) -> tuple[bool, bool, bool, bool]:
    return (not is_plain(case), case.values != "normal", case.dtype != "float32", case.why != "odd")
