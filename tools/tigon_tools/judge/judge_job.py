"""Job `judge`: is a candidate what the reference says, forward and backward?

The reference runs here, in float64 and in eager; the candidate runs in a process of its own, forked
from this one, and hands over tensors. Comparison and clock are here.
"""

from __future__ import annotations

import time

import torch

from tigon_tools.jobs import Progress
from tigon_tools.judge.cases import DTYPES, Plan
from tigon_tools.judge.examination import Examination
from tigon_tools.judge.expectation import Expectations
from tigon_tools.judge.process import CASE_SECONDS, CandidateGone, CandidateProcess
from tigon_tools.schema.errors import JobError
from tigon_tools.schema.judge import JudgeRequest, JudgeResult
from tigon_tools.trace.graph import trace
from tigon_tools.trace.reference import load

MOST_CRASHES = 3
"""Of the candidate's process: each costs a start of seconds, and a fourth would say nothing new."""

LEAST_SECONDS = 5.0
"""For a case that starts just before the end of the time."""


def run(request: JudgeRequest, progress: Progress | None = None) -> JudgeResult:
    """Judge a candidate.

    Raises:
        JobError: "bad_reference" or "untraceable" for the reference; "bad_request" for the request.
            What is wrong with the candidate is a finding, not an error.
    """
    dtypes = _dtypes(request)
    start = time.monotonic()
    # A pool of threads would not survive the fork between this process and the candidate's.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        loaded = load(request.reference)
        operation = trace(loaded)
        unknown = sorted(set(request.overwrites) - {a.name for a in operation.tensors})
        if unknown:
            raise JobError("bad_request", f"overwrites names {unknown[0]!r}, which is no tensor of the reference.")
        process = CandidateProcess(request.candidate, request.workspace, request.device)
        examination = Examination(process, Expectations(loaded, operation), request.overwrites, request.kernels)
        try:
            _examine(examination, Plan(operation, dtypes, request.seed), start + request.max_seconds, request, progress)
        finally:
            process.stop()
    finally:
        torch.set_num_threads(threads)
    return examination.findings.result(time.monotonic() - start, gradients=bool(operation.gradients))


def _dtypes(request: JudgeRequest) -> tuple[str, ...]:
    dtypes = DTYPES if request.dtypes is None else request.dtypes
    for name in dtypes:
        if name not in DTYPES:
            raise JobError("bad_request", f"dtype {name!r} is not judged.", f"Use {', '.join(DTYPES)}.")
    if not dtypes:
        raise JobError("bad_request", "dtypes is empty.", f"Use {', '.join(DTYPES)}.")
    return tuple(dict.fromkeys(dtypes))


def _examine(
    examination: Examination, plan: Plan, deadline: float, request: JudgeRequest, progress: Progress | None
) -> None:
    """Every case of the plan, until the time is up or the candidate has crashed too often."""
    findings = examination.findings
    try:
        examination.process.start()
    except CandidateGone as gone:
        findings.failed("load", f"the candidate cannot be loaded: {gone}.")
        return
    cases = list(plan)
    for number, case in enumerate(cases):
        left = deadline - time.monotonic()
        if left <= 0:
            reason = f"within {request.max_seconds:g} s"
            findings.skipped("time", f"{len(cases) - number} of {len(cases)} cases were not run {reason}.")
            return
        if examination.crashes >= MOST_CRASHES:
            reason = f"after the candidate's process had ended {examination.crashes} times"
            findings.skipped("crash", f"{len(cases) - number} of {len(cases)} cases were not run {reason}.")
            return
        if progress is not None:
            progress(f"judge: {case.label}", number / len(cases))
        examination.case(case, min(CASE_SECONDS, max(left, LEAST_SECONDS)))
