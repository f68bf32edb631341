"""A `JobRunner` with the misbehaving jobs, for tests that are ordinary functions."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from misbehaving_jobs import NAME, Answer, Request

from tigon.jobs.limits import Limits
from tigon.jobs.runner import JobFailed, JobRunner
from tigon_tools.schema.errors import JobFailure

WAIT = 60
"""Seconds after which a test gives up on an event that should come at once."""

AMPLE = Limits(seconds=10 * WAIT, memory_mib=4096)
"""No test waits so long: what ends, ends for another reason."""

HERE = Path(__file__).resolve().parent


class JobSession:
    def __init__(self, portal: BlockingPortal, runner: JobRunner) -> None:
        self.portal = portal
        self.runner = runner

    def answer(
        self,
        what: str,
        path: str | Path = "",
        *,
        limits: Limits = AMPLE,
        device: str = "cpu",
        progress: Callable[[str, float], None] | None = None,
    ) -> Answer:
        async def run() -> Any:
            request = Request(what, str(path))
            return await self.runner.run(NAME, request, limits=limits, device=device, progress=progress)

        answer = self.portal.call(run)
        assert isinstance(answer, Answer)
        return answer

    def text(self, what: str, path: str | Path = "", **options: Any) -> str:
        return self.answer(what, path, **options).text

    def failure(self, what: str, path: str | Path = "", **options: Any) -> JobFailure:
        with pytest.raises(JobFailed) as caught:
            self.answer(what, path, **options)
        return caught.value.failure


@contextmanager
def job_session(**options: Any) -> Iterator[JobSession]:
    """A runner of its own, with parents that know the misbehaving jobs."""
    with pytest.MonkeyPatch.context() as patch, start_blocking_portal() as portal:
        patch.setenv("PYTHONPATH", str(HERE))

        async def make() -> JobRunner:
            return JobRunner(sys.executable, extra_jobs="misbehaving_jobs", **options)

        runner = portal.call(make)
        try:
            yield JobSession(portal, runner)
        finally:
            portal.call(runner.close)


def watch(pids: list[int]) -> list[int]:
    """File descriptors that become readable when the processes end; none for one that has."""
    watched = []
    for pid in pids:
        with suppress(ProcessLookupError):
            watched.append(os.pidfd_open(pid))
    return watched


def all_end(watched: list[int]) -> bool:
    """Wait for every watched process to end."""
    try:
        return all(select.select([process], [], [], WAIT)[0] for process in watched)
    finally:
        for process in watched:
            os.close(process)


def is_running(pid: int) -> bool:
    """Whether a process lives; one that has ended and is not yet reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"
