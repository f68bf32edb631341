"""One job as its parent sees it: a process, the pipe of its messages, the pipe of what it prints."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tigon_tools import job_end, launch
from tigon_tools.message_lines import LineBuffer, LineTooLong
from tigon_tools.schema.errors import JobFailure
from tigon_tools.schema.wire import WireError, from_wire

KEPT_OUTPUT = 4096
"""Bytes of a job's last output that are kept for the message about a crash."""

PASSED_OUTPUT = 256 * 2**10
"""Bytes of a job's output that go on to stderr, for the server's log; a traceback is a few thousand."""


class BadMessage(ValueError):
    """What came through the pipe of messages is none."""


@dataclass
class JobProcess:
    """pid: leads its own process group. messages, output: the pipes' reading ends, not blocking."""

    id: int
    name: str
    seconds: float
    memory_mib: int
    pid: int
    messages: int
    output: int
    deadline: float = 0.0
    kills_before: int = field(default_factory=job_end.out_of_memory_kills)
    printed: bytearray = field(default_factory=bytearray)
    _lines: LineBuffer = field(default_factory=LineBuffer)
    _passed: int = 0

    def __post_init__(self) -> None:
        self.deadline = time.monotonic() + self.seconds
        for fd in (self.messages, self.output):
            os.set_blocking(fd, False)

    def read(self, fd: int) -> tuple[list[dict[str, Any]], bool]:
        """What has come on one of the pipes: messages (none for the output), and whether it is still open.

        Raises:
            BadMessage: the job wrote something else to the pipe of messages.
        """
        try:
            data = os.read(fd, 65536)
        except BlockingIOError:
            return [], True
        if fd == self.output:
            self._keep(data)
            return [], bool(data)
        try:
            return [_message(line) for line in self._lines.feed(data)], bool(data)
        except LineTooLong as problem:
            raise BadMessage(str(problem)) from None

    def drain(self) -> list[dict[str, Any]]:
        """All that the process left in the pipes when it ended."""
        found: list[dict[str, Any]] = []
        for fd in (self.output, self.messages):
            # A pipe holds 64 KiB unless somebody made it larger; what is beyond a megabyte is no last word.
            for _ in range(16):
                messages, is_open = self.read(fd)
                found += messages
                if not is_open:
                    break
        return found

    def close(self) -> None:
        for fd in (self.messages, self.output):
            os.close(fd)

    def _keep(self, data: bytes) -> None:
        self.printed = (self.printed + data)[-KEPT_OUTPUT:]
        if self._passed < PASSED_OUTPUT:
            self._passed += len(data)
            with contextlib.suppress(BlockingIOError):  # the log is not worth waiting for
                os.write(2, data)


def _message(line: bytes) -> dict[str, Any]:
    """A message of `child.run_job`, checked: what a job runs may write to any file descriptor."""
    try:
        match json.loads(line):
            case {"started": True}:
                return {"started": True}
            case {"progress": [str(text), float() | int() as fraction]}:
                return {"progress": [text, fraction]}
            case {"result": dict(result)}:
                return {"result": result}
            case {"failure": failure}:
                from_wire(JobFailure, failure)
                return {"failure": failure}
    except (ValueError, WireError, RecursionError):
        pass
    raise BadMessage(f"{line[:60]!r} is not a message of a job")


def start(message: dict[str, Any], spawn: bool, extra_jobs: str | None, become: Callable[[int], None]) -> JobProcess:
    """Start the process of a job.

    become: in the forked child, runs the job and writes to the given file descriptor.
    """
    read_messages, write_messages = os.pipe()
    read_output, write_output = os.pipe()
    try:
        if spawn:
            pid = _spawn(message, write_messages, write_output, extra_jobs)
        else:
            pid = os.fork()
            if pid == 0:
                _run_forked(become, write_messages, write_output, (read_messages, read_output))
    except BaseException:
        os.close(read_messages)
        os.close(read_output)
        raise
    finally:
        os.close(write_messages)
        os.close(write_output)
    return JobProcess(
        message["id"], message["job"], message["seconds"], message["memory_mib"], pid, read_messages, read_output
    )


def _run_forked(become: Callable[[int], None], messages: int, output: int, theirs: tuple[int, int]) -> None:
    """In the child; never returns."""
    try:
        os.dup2(output, 1)
        os.dup2(output, 2)
        for fd in (output, *theirs):
            os.close(fd)
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(io.FileIO(fd, "w", closefd=False), "utf-8", "backslashreplace", line_buffering=True)
            for fd in (1, 2)
        )
        become(messages)
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _spawn(message: dict[str, Any], messages: int, output: int, extra_jobs: str | None) -> int:
    arguments = [str(messages), str(os.getpid()), *([extra_jobs] if extra_jobs else [])]
    with tempfile.TemporaryFile() as request:  # a pipe would block on a long one
        request.write(json.dumps(message).encode())
        request.seek(0)
        process = subprocess.Popen(
            launch.command(sys.executable, "tigon_tools.child", *arguments),
            stdin=request,
            stdout=output,
            stderr=output,
            pass_fds=(messages,),
            start_new_session=True,
        )
    process.returncode = 0  # the parent reaps it with all the others; Popen must not
    return process.pid
