"""Run one job in this process and say how it went, as a message that can be sent.

Everything a job can do short of ending its process comes back as `{"result": …}` or `{"failure": …}`.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Any

from tigon_tools.jobs import JOBS, Progress
from tigon_tools.redaction import redact
from tigon_tools.schema.errors import JobError, JobFailure
from tigon_tools.schema.wire import WireError, from_wire, to_wire

_NEEDED = ("torch", "triton", "numpy")
"""Without these no job of ours can run; any other missing module is the author's own."""

_NO_MEMORY = ("can't allocate memory", "not enough memory", "std::bad_alloc", "Cannot allocate memory")
"""How torch and the C++ library say it, on a CPU."""


def execute(name: str, request: Any, progress: Progress) -> dict[str, Any]:
    """Run job `name` on a request in JSON form. Nothing is raised."""
    job = JOBS.get(name)
    if job is None:
        known = ", ".join(sorted(JOBS))
        return failed(JobFailure("bad_request", f"there is no job {name!r}.", f"The jobs are {known}."))
    try:
        read = from_wire(job.request, request)
    except WireError as problem:
        return failed(
            JobFailure("bad_request", f"job {name}: {problem}.", f"The fields are those of {job.request.__name__}.")
        )
    try:
        result = job.load()(read, progress)
    except JobError as problem:
        return failed(problem.failure)
    except BaseException as problem:
        traceback.print_exc()
        return failed(_unexpected(name, problem))
    try:
        return {"result": to_wire(result)}
    except WireError as problem:
        return failed(JobFailure("crashed", f"job {name} gave a result that cannot be sent: {problem}.", _OURS))


_OURS = "This is a fault of the job, not of the request; its traceback is in the server's log."


def failed(failure: JobFailure) -> dict[str, Any]:
    return {"failure": to_wire(failure)}


def missing(package: str, problem: BaseException | str) -> JobFailure:
    """A failure that says how to get a package into the interpreter that runs jobs."""
    return JobFailure(
        "no_torch",
        f"{sys.executable} cannot import {package}: {redact(str(problem))}.",
        f"Install it there ({sys.executable} -m pip install 'tigon[kernels]', or torch, triton and numpy as you "
        "choose), or set TIGON_PYTHON to the interpreter that has them.",
    )


def _unexpected(name: str, problem: BaseException) -> JobFailure:
    said = redact(" ".join(str(problem).split()))[:500]
    if _is_out_of_memory(problem):
        return JobFailure(
            "memory",
            f"job {name} ran out of memory: {said or type(problem).__name__}.",
            "Use smaller shapes, or look for what keeps growing.",
        )
    if isinstance(problem, ModuleNotFoundError) and problem.name in _NEEDED:
        return missing(problem.name, problem)
    if isinstance(problem, SystemExit):
        return JobFailure(
            "crashed",
            f"job {name} called sys.exit({problem.code!r}){_place(problem)} and gave no result.",
            "A reference or kernel must not end the process.",
        )
    text = f"{type(problem).__name__}{f': {said}' if said else ''}"
    return JobFailure("crashed", f"job {name} failed: {text}{_place(problem)}.", _OURS)


def _is_out_of_memory(problem: BaseException) -> bool:
    if isinstance(problem, MemoryError) or type(problem).__name__ == "OutOfMemoryError":
        return True
    return isinstance(problem, (RuntimeError, OSError)) and any(text in str(problem) for text in _NO_MEMORY)


def _place(problem: BaseException) -> str:
    frames = traceback.extract_tb(problem.__traceback__)
    return f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
