"""A failure that a job explains, as opposed to a crash."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class JobFailure:
    """kind: a stable word ("untraceable", "bad_reference", "bad_request", "unsupported", "timeout",
    "memory", "crashed", "cancelled", "no_torch"); message: what was wrong and where;
    next_step: what to do; line: of the reference, 1-based, where known."""

    kind: str
    message: str
    next_step: str = ""
    line: int | None = None


class JobError(Exception):
    """Raised by a job for bad input or something it cannot do; carries the `JobFailure`."""

    def __init__(self, kind: str, message: str, next_step: str = "", line: int | None = None) -> None:
        super().__init__(message)
        self.failure = JobFailure(kind, message, next_step, line)
