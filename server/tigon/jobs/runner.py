"""Run jobs in the interpreter that has torch: through a warm parent, one process a job.

One parent for each device: Triton decides when it is imported whether kernels are interpreted, so
"cpu" and "cuda" cannot share one. A parent is started when it is first needed and again after it died.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tigon.jobs.environment import job_environment
from tigon.jobs.job_parent import JobParent, Message
from tigon.jobs.limits import BY_JOB, DEFAULT, Limits
from tigon.jobs.tools_path import ToolsPath
from tigon_tools.jobs import JOBS
from tigon_tools.schema.errors import JobFailure
from tigon_tools.schema.wire import WireError, from_wire, to_wire

Progress = Callable[[str, float], None]
"""Called on the event loop with what a job is doing, and how far it is from 0 to 1."""

_STARTS = 3
"""Times a parent may die between its start and its first job before that is given up."""


class JobFailed(Exception):
    """A job that did not give a result; `failure` says what, why, and what to do."""

    def __init__(self, failure: JobFailure) -> None:
        super().__init__(f"{failure.message} {failure.next_step}".strip())
        self.failure = failure


class JobRunner:
    """Runs jobs; safe to use from many tasks of one event loop."""

    def __init__(
        self, python: str | None = None, *, cwd: Path | None = None, extra_jobs: str | None = None, spawn: bool = False
    ) -> None:
        """python: the interpreter that has torch (`TIGON_PYTHON`, else the one that runs this).

        cwd: the folder that jobs run in; the current one by default.
        extra_jobs: an importable module that adds to `tigon_tools.jobs.JOBS`; tests use it for jobs that
            misbehave. It is imported by the parent; whoever gives it adds to their own `JOBS` too.
        spawn: a fresh process for each job instead of a fork, as `TIGON_JOBS=spawn` asks for.
        """
        self._python = python or os.environ.get("TIGON_PYTHON") or sys.executable
        self._cwd = cwd
        self._extra_jobs = extra_jobs
        self._spawn = spawn or os.environ.get("TIGON_JOBS") == "spawn"
        self._tools = ToolsPath(self._python)
        self._parents: dict[str, JobParent] = {}
        self._starting = asyncio.Lock()
        self._warming: set[asyncio.Task[None]] = set()
        self._ids = itertools.count(1)

    async def run(
        self,
        job: str,
        request: Any,
        *,
        limits: Limits | None = None,
        device: str = "cpu",
        progress: Progress | None = None,
    ) -> Any:
        """Run a job to its result; cancelling the caller kills the job.

        device: "cpu" has Triton's interpreter, "cuda" the compiler.

        Raises:
            JobFailed: with the failure that the job, a limit, or its death gave.
        """
        limits = limits or BY_JOB.get(job, DEFAULT)
        message = {
            "job": job,
            "request": to_wire(request),
            "seconds": limits.seconds,
            "memory_mib": limits.memory_mib,
        }
        parent = await self._parent(device)
        number = next(self._ids)
        answer: Message | None = None
        queue = parent.submit(number, message)
        try:
            answer = await _answer(queue, progress)
        finally:
            parent.forget(number, cancel=answer is None)
        if "failure" in answer:
            raise JobFailed(from_wire(JobFailure, answer["failure"]))
        try:
            return from_wire(JOBS[job].result, answer["result"])
        except WireError as problem:
            raise JobFailed(
                JobFailure("crashed", f"job {job} gave a result of the wrong form: {problem}.", "Update both packages.")
            ) from None

    def warm(self, device: str = "cpu") -> None:
        """Start the parent in the background, so that the first job does not wait for torch."""

        async def start() -> None:
            with contextlib.suppress(JobFailed):  # the first job says it
                await self._parent(device)

        task = asyncio.get_running_loop().create_task(start())
        self._warming.add(task)
        task.add_done_callback(self._warming.discard)

    async def close(self) -> None:
        """End the parents and every job below them; those who wait for one get a failure."""
        for task in list(self._warming):
            task.cancel()
        async with self._starting:
            parents = list(self._parents.values())
            self._parents.clear()
        for parent in parents:
            await parent.stop()

    async def _parent(self, device: str) -> JobParent:
        """A parent that is ready and alive now.

        Raises:
            JobFailed: "no_torch" where the interpreter cannot run jobs, and says how to mend that.
        """
        for _ in range(_STARTS):
            async with self._starting:
                parent = self._parents.get(device)
                if parent is None or not parent.alive:
                    if parent is not None:
                        await parent.stop()
                    parent = self._parents[device] = await self._start(device)
            refused = await parent.until_ready()
            if refused is not None:
                raise JobFailed(refused)
            if parent.alive:
                return parent
        raise JobFailed(
            JobFailure(
                "crashed",
                f"the process that runs jobs died {_STARTS} times right after its start.",
                "Look for what ends it: a memory limit of the container, or a person.",
            )
        )

    async def _start(self, device: str) -> JobParent:
        arguments = ["--interpret"] if device == "cpu" else []
        if self._spawn:
            arguments.append("--spawn")
        if self._extra_jobs:
            arguments += ["--jobs", self._extra_jobs]
        environment = job_environment(os.environ, self._tools.folder)
        if device == "cpu":
            environment["TRITON_INTERPRET"] = "1"
        else:
            environment.pop("TRITON_INTERPRET", None)
        try:
            return await JobParent.start(self._python, arguments, self._cwd, environment)
        except OSError as problem:
            raise JobFailed(
                JobFailure(
                    "no_torch",
                    f"{self._python} cannot be run: {problem.strerror}.",
                    "Set TIGON_PYTHON to the Python interpreter that has torch.",
                )
            ) from None


async def _answer(queue: asyncio.Queue[Message], progress: Progress | None) -> Message:
    """The message that ends a job."""
    while True:
        message = await queue.get()
        if "progress" in message:
            if progress is not None:
                text, fraction = message["progress"]
                progress(text, fraction)
        elif "started" not in message:
            return message
