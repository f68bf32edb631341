"""The warm parent's process, as the server holds it: started, talked to, found dead, stopped."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tigon_tools.launch import command
from tigon_tools.message_lines import LONGEST_LINE
from tigon_tools.redaction import redact
from tigon_tools.schema.errors import JobFailure
from tigon_tools.schema.wire import from_wire, to_wire

log = logging.getLogger(__name__)

START_SECONDS = 120.0
"""Importing torch takes 2 s on a warm disk, and a minute on a cold network file system."""

STOP_SECONDS = 5.0
"""A parent ends within milliseconds of its stdin closing; after this it is killed."""

LOG_SECONDS = 1.0
"""For the last lines of a process that has ended; they are in the pipe already."""

Message = dict[str, Any]


class JobParent:
    """One parent process. A job's messages come through the queue that `submit` gives."""

    def __init__(self, python: str, process: asyncio.subprocess.Process) -> None:
        self._python = python
        self._process = process
        self._queues: dict[int, asyncio.Queue[Message]] = {}
        self._leaders: dict[int, int] = {}
        self._last_lines: deque[str] = deque(maxlen=20)
        self._ready = asyncio.Event()
        self._refused: JobFailure | None = None
        self._ended = False
        loop = asyncio.get_running_loop()
        self._log = loop.create_task(self._read_log())
        self._messages = loop.create_task(self._read_messages())

    @classmethod
    async def start(
        cls, python: str, arguments: list[str], cwd: Path | None, environment: Mapping[str, str]
    ) -> JobParent:
        """Start the process; it is not ready yet.

        Raises:
            OSError: there is no such interpreter.
        """
        process = await asyncio.create_subprocess_exec(
            *command(python, "tigon_tools.parent", *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=LONGEST_LINE + 4096,
            cwd=cwd,
            env=environment,
            start_new_session=True,
        )
        return cls(python, process)

    @property
    def alive(self) -> bool:
        """Whether a job can be submitted now."""
        return not self._ended and self._refused is None and self._process.returncode is None

    async def until_ready(self) -> JobFailure | None:
        """Wait for torch to be imported. None, or why jobs cannot run."""
        try:
            await asyncio.wait_for(self._ready.wait(), START_SECONDS)
        except asyncio.TimeoutError:
            await self.stop()
            return self._did_not_start(f"no answer within {START_SECONDS:g} s")
        return self._refused

    def submit(self, number: int, message: Message) -> asyncio.Queue[Message]:
        """Start job `number`. Call it only while `alive`, with nothing awaited in between."""
        queue = self._queues[number] = asyncio.Queue()
        self._send({**message, "id": number})
        return queue

    def forget(self, number: int, *, cancel: bool) -> None:
        """No more messages of job `number` are wanted; `cancel` kills it."""
        self._queues.pop(number, None)
        self._leaders.pop(number, None)
        if cancel:
            self._send({"cancel": number})

    async def stop(self) -> None:
        """End the process and every job below it."""
        process = self._process
        if process.returncode is None:
            if process.stdin is not None:
                process.stdin.close()
            try:
                await asyncio.wait_for(process.wait(), STOP_SECONDS)
            except asyncio.TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        # What has ended is noticed there, and told to whoever waits for a job.
        await asyncio.wait({self._messages}, timeout=STOP_SECONDS)
        for task in (self._messages, self._log):
            task.cancel()
        await asyncio.gather(self._messages, self._log, return_exceptions=True)

    def _send(self, message: Message) -> None:
        stdin = self._process.stdin
        if not self._ended and stdin is not None and not stdin.is_closing():
            stdin.write(json.dumps(message).encode() + b"\n")

    async def _read_messages(self) -> None:
        assert self._process.stdout is not None
        try:
            while line := await self._process.stdout.readline():
                self._receive(line)
        except ValueError as problem:  # longer than the limit: a parent never sends that
            log.error("the process that runs jobs is stopped: %s", problem)
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        finally:
            self._ended = True
        code = await self._process.wait()
        if not self._ready.is_set():
            await asyncio.wait({self._log}, timeout=LOG_SECONDS)
            self._refused = self._refused or self._did_not_start(f"it ended with exit code {code}")
            self._ready.set()
        self._fail_all()

    def _receive(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            log.warning("not a message from a job: %r", line[:200])
            return
        if "ready" in message:
            if not message["ready"]:
                self._refused = from_wire(JobFailure, message["failure"])
            self._ready.set()
        elif (number := message.get("id")) in self._queues:
            if "pid" in message:
                self._leaders[number] = message["pid"]
            self._queues[number].put_nowait(message)

    def _fail_all(self) -> None:
        """The parent is dead: say so to those who wait, and see that their jobs are dead too."""
        for leader in self._leaders.values():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(leader, signal.SIGKILL)
        failure = JobFailure("crashed", "the process that runs jobs died.", "Call again; it is started anew.")
        for queue in self._queues.values():
            queue.put_nowait({"failure": to_wire(failure)})

    async def _read_log(self) -> None:
        """Keep the last lines for a message about a failed start; the rest is debug output."""
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(65536):
            for line in data.decode(errors="replace").splitlines():
                if line.strip():
                    self._last_lines.append(line)
                    log.debug("job: %s", line)

    def _did_not_start(self, why: str) -> JobFailure:
        last = f" It last wrote: {redact(self._last_lines[-1])[:300]}" if self._last_lines else ""
        return JobFailure(
            "no_torch",
            f"jobs cannot run in {self._python}: {why}.{last}",
            "Set TIGON_PYTHON to the Python interpreter that has torch; `tigon doctor` says what is missing.",
        )
