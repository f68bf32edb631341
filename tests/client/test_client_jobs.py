"""Jobs seen from the client: they die with the call, they crash alone, and what went wrong is said."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from anyio.from_thread import BlockingPortal
from stdio_session import Session, connected

WAIT = 30
"""Seconds after which a test gives up on an event that should come at once."""

INPUTS = [{"name": "x", "shape": [4, 8]}]

ENDLESS = """\
os, time = __import__("os"), __import__("time")

with open({fifo!r}, "w") as fifo:
    fifo.write(str(os.getpid()))
while True:
    time.sleep(1)

def f(x):
    return x
"""
CRASH = """\
os = __import__("os")
os.kill(os.getpid(), 11)

def f(x):
    return x
"""
LEAVES = """\
__import__("os")._exit(0)

def f(x):
    return x
"""
BRANCHES = """\
def f(x):
    if x.sum() > 0:
        return x
    return -x
"""


@pytest.fixture(scope="module")
def session(portal: BlockingPortal, era: str, workspace: Path) -> Iterator[Session]:
    with connected(portal, workspace, era) as session:
        yield session


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfds to see a process end")
def test_cancelling_a_call_kills_its_job(session: Session, tmp_path: Path) -> None:
    fifo = str(tmp_path / "pid")
    os.mkfifo(fifo)
    listen = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    arguments = {"source": ENDLESS.format(fifo=fifo), "entry": "f", "inputs": INPUTS}

    async def call_and_cancel() -> int:
        with anyio.fail_after(WAIT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(session.client.call_tool, "classify_tier", arguments)
                await anyio.wait_readable(listen)
                job = os.pidfd_open(int(os.read(listen, 20)))
                tasks.cancel_scope.cancel()
        return job

    job = session.portal.call(call_and_cancel)
    os.close(listen)
    ready, _, _ = select.select([job], [], [], WAIT)
    os.close(job)
    assert ready, "the job outlived its call"
    assert session.works("task_status")["next"]


@pytest.mark.parametrize(("source", "says"), [(CRASH, "signal"), (LEAVES, "exit")], ids=["segfault", "exit"])
def test_a_crash_is_a_tool_error_that_says_so(session: Session, source: str, says: str) -> None:
    text = session.refused("classify_tier", source=source, entry="f", inputs=INPUTS)
    assert text.startswith("gate job: ") and " Next: " in text
    assert says in text.lower()
    assert "Traceback" not in text


def test_what_cannot_be_traced_is_said_with_its_line(session: Session) -> None:
    text = session.refused("classify_tier", source=BRANCHES, entry="f", inputs=INPUTS)
    assert text.startswith("gate ") and " Next: " in text
    assert "line 2" in text


def test_a_traced_reference_comes_with_its_facts(session: Session) -> None:
    source = "import torch\n\ndef f(x):\n    return torch.tanh(x) * x\n"
    answer = session.works("classify_tier", source=source, entry="f", inputs=INPUTS)
    assert answer["tier"] == 1
    assert any("tanh" in sentence for sentence in answer["evidence"])
    assert session.progress, "a call with a job reports progress"
    values = [value for value, _, _ in session.progress]
    assert values == sorted(set(values)), "every progress value is larger than the one before"
