"""The server's side of the parent's protocol, without the server: JSON lines over two pipes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tigon_tools.jobs import JOBS
from tigon_tools.launch import command
from tigon_tools.schema.errors import JobFailure
from tigon_tools.schema.wire import from_wire, to_wire


class ParentClient:
    """A parent process; `lines` are all messages it has sent."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []
        self._ids = 0

    def start(self, job: str, request: Any, *, seconds: float = 120, memory_mib: int = 8192) -> int:
        self._ids += 1
        message = {"id": self._ids, "job": job, "seconds": seconds, "memory_mib": memory_mib}
        self.write({**message, "request": to_wire(request)})
        return self._ids

    def write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the parent has ended"
        self.lines.append(json.loads(line))
        return self.lines[-1]

    def end_of(self, number: int) -> dict[str, Any]:
        while True:
            message = self.read()
            if message.get("id") == number and ("result" in message or "failure" in message):
                return message

    def result(self, job: str, request: Any) -> Any:
        message = self.end_of(self.start(job, request))
        assert "result" in message, message
        return from_wire(JOBS[job].result, message["result"])

    def failure(self, job: str, request: Any, **limits: Any) -> JobFailure:
        message = self.end_of(self.start(job, request, **limits))
        assert "failure" in message, message
        return from_wire(JobFailure, message["failure"])


@contextmanager
def parent_client(*arguments: str) -> Iterator[ParentClient]:
    # Without what a developer's shell may have set: jobs themselves must leave no bytecode behind.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(
        command(sys.executable, "tigon_tools.parent", *arguments),
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        client = ParentClient(process)
        assert client.read() == {"ready": True}
        yield client
    finally:
        process.stdin.close()
        process.wait(60)
        process.stdout.close()
