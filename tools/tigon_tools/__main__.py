"""`python -m tigon_tools JOB`: one job by hand. JSON request on stdin, JSON result on stdout.

Exit 0 with the result; 1 with `{"error": {kind, message, next_step, line}}` where the job fails; 2,
with the same, where the request is not one. Nothing but that JSON reaches stdout.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, TextIO

from tigon_tools.execution import execute, failed
from tigon_tools.jobs import JOBS
from tigon_tools.schema.errors import JobFailure


def main(arguments: list[str]) -> int:
    """Run a job; returns the exit status."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m tigon_tools JOB < request.json > result.json\n\njobs:")
        for name, job in sorted(JOBS.items()):
            print(f"  {name:12} {job.request.__name__} to {job.result.__name__}, in {job.request.__module__}")
        return 0
    answer = _own_stdout()
    message = _run(arguments)
    if "result" in message:
        _print(answer, message["result"])
        return 0
    _print(answer, {"error": message["failure"]})
    return 2 if message["failure"]["kind"] == "bad_request" else 1


def _run(arguments: list[str]) -> dict[str, Any]:
    name, *more = arguments
    if more:
        return failed(JobFailure("bad_request", f"one job at a time; {' '.join(more)!r} is too much.", _SYNOPSIS))
    if name not in JOBS:
        return execute(name, None, _print_progress)
    try:
        request = json.load(sys.stdin)
    except ValueError as problem:  # not JSON, or not UTF-8
        return failed(JobFailure("bad_request", f"the request is not JSON: {problem}.", _SYNOPSIS))
    return execute(name, request, _print_progress)


_SYNOPSIS = "python -m tigon_tools JOB < request.json; without JOB it lists the jobs."


def _own_stdout() -> TextIO:
    """Keep stdout for the answer; whatever a job prints goes to stderr."""
    sys.stdout.flush()
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answer


def _print_progress(text: str, fraction: float) -> None:
    print(f"{fraction:4.0%} {text}", file=sys.stderr)


def _print(answer: TextIO, document: Any) -> None:
    json.dump(document, answer)
    answer.write("\n")
    answer.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
