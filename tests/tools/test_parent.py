"""The parent's protocol over its own pipes, without the server."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from parent_client import ParentClient, parent_client

from tigon_tools.schema.gates import MachineRequest, MachineResult
from tigon_tools.schema.reference import ResolveRequest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs fork")

WAIT = 60
SNIPPET = "import torch\ndef f(x):\n    return torch.tanh(x)\n"


@pytest.fixture(scope="module")
def parent() -> Iterator[ParentClient]:
    with parent_client("--interpret") as client:
        yield client


def test_a_job_starts_then_answers(parent: ParentClient) -> None:
    number = parent.start("machine", MachineRequest())
    started = parent.read()
    assert started.pop("pid") > 0
    assert started == {"id": number, "started": True}
    answer = parent.end_of(number)
    assert answer["id"] == number
    assert answer["result"]["executable"] == sys.executable


def test_an_unknown_job_is_named(parent: ParentClient) -> None:
    failure = parent.failure("brew", MachineRequest())
    assert failure.kind == "bad_request"
    assert "'brew'" in failure.message and "unit_tests" in failure.next_step


def test_a_request_that_does_not_fit_is_named(parent: ParentClient) -> None:
    failure = parent.failure("machine", {"folder": "here"})
    assert failure.kind == "bad_request"
    assert "unknown field 'folder'" in failure.message
    assert "MachineRequest" in failure.next_step


def test_requests_may_come_in_pieces_and_together(parent: ParentClient) -> None:
    stdin = parent.process.stdin
    assert stdin is not None
    lines = b"".join(
        json.dumps({"id": number, "job": "machine", "request": {}, "seconds": 60, "memory_mib": 4096}).encode() + b"\n"
        for number in (1001, 1002)
    )
    for piece in (lines[:7], lines[7:90], lines[90:]):
        stdin.write(piece)
        stdin.flush()
    ended = set()
    while len(ended) < 2:
        message = parent.read()
        if "result" in message:
            ended.add(message["id"])
    assert ended == {1001, 1002}


def test_cancelling_what_has_ended_does_nothing(parent: ParentClient) -> None:
    number = parent.start("machine", MachineRequest())
    parent.end_of(number)
    parent.write({"cancel": number})
    assert isinstance(parent.result("machine", MachineRequest()), MachineResult)


def test_a_cancelled_job_says_so(parent: ParentClient, tmp_path: Path) -> None:
    fifo = tmp_path / "started"
    os.mkfifo(fifo)
    endless = f"import torch\nopen({str(fifo)!r}, 'w').close()\nwhile True:\n    pass\ndef f(x):\n    return x\n"
    (tmp_path / "endless.py").write_text(endless)
    number = parent.start("resolve", ResolveRequest("endless:f", str(tmp_path)))
    fifo.read_text()
    parent.write({"cancel": number})
    answer = parent.end_of(number)
    assert answer["failure"]["kind"] == "cancelled"


def test_the_end_of_stdin_ends_the_parent() -> None:
    with parent_client("--spawn") as client:
        assert client.process.stdin is not None
        client.process.stdin.close()
        assert client.process.wait(WAIT) == 0


def test_a_parent_that_loses_its_reader_ends() -> None:
    with parent_client("--spawn") as client:
        assert client.process.stdout is not None
        client.process.stdout.close()
        client.start("machine", MachineRequest())
        assert client.process.wait(WAIT) == 0


def test_a_job_dies_when_its_parent_is_killed(tmp_path: Path) -> None:
    fifo = tmp_path / "pid"
    os.mkfifo(fifo)
    waits = f"import os, time\nopen({str(fifo)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\ndef f(x): return x\n"
    (tmp_path / "waits.py").write_text(waits)
    process = subprocess.Popen(
        [sys.executable, "-m", "tigon_tools.parent", "--spawn"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        client = ParentClient(process)
        assert client.read() == {"ready": True}
        client.start("resolve", ResolveRequest("waits:f", str(tmp_path)))
        job = os.pidfd_open(int(fifo.read_text()))
        process.send_signal(signal.SIGKILL)
        ended = select.select([job], [], [], WAIT)[0]
        os.close(job)
    assert ended, "the job outlived its parent"


def test_stdout_has_messages_only(parent: ParentClient) -> None:
    parent.result("resolve", ResolveRequest(SNIPPET, ".", "f"))
    assert all({"ready", "id"} & set(line) for line in parent.lines)
