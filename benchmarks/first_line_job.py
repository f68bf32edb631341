"""A job that says when its first line ran; `job_start.py` uses it, and Tigon does not ship it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from tigon_tools.jobs import JOBS, Job, Progress

NAME = "first_line"


@dataclass(frozen=True)
class Request:
    pass


@dataclass(frozen=True)
class Answer:
    """seconds: `time.monotonic()`, one clock for all processes of a machine."""

    seconds: float


def run(request: Request, progress: Progress) -> Answer:
    return Answer(time.monotonic())


JOBS[NAME] = Job(NAME, Request, Answer, __name__)
