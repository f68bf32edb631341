"""`tigon review` in a real (pseudo) terminal, and its refusal anywhere else."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from tigon.workflow.service import KernelWorkflow

SOURCE = "import torch\n\ndef double_silu(x):\n    return 2 * x * torch.sigmoid(x)\n"
PROFILE = {
    "operation_name": "double_silu",
    "reference": {"source": SOURCE, "entry": "double_silu", "inputs": [{"name": "x", "shape": [4, 8]}]},
}


@pytest.fixture(scope="module")
def workspace(pristine_liger: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("review") / "liger"
    shutil.copytree(pristine_liger, root, symlinks=True)
    return root


@pytest.fixture(scope="module")
def waiting(workspace: Path) -> list[str]:
    """Three tasks whose profiles wait for a human."""

    async def emit() -> list[str]:
        workflow = KernelWorkflow(workspace)
        try:
            return [
                (await workflow.emit_profile("liger-kernel-dev", profile, None, lambda said, done: None)).task_id
                for profile in ({**PROFILE, "operation_name": f"double_silu_{number}"} for number in range(3))
            ]
        finally:
            await workflow.close()

    return anyio.run(emit)


@pytest.fixture
def to_approve(waiting: list[str]) -> str:
    return waiting[0]


@pytest.fixture
def to_send_back(waiting: list[str]) -> str:
    return waiting[1]


@pytest.fixture
def pending(waiting: list[str]) -> str:
    """Nobody decides on this one."""
    return waiting[2]


def state_of(workspace: Path, task_id: str) -> str:
    return KernelWorkflow(workspace).task_status(task_id).state


def at_terminal(workspace: Path, task_id: str, type_in: Callable[[str], list[str]]) -> tuple[int, str]:
    """Run `tigon review TASK` with a terminal of its own. `type_in` gives the lines to type once the first
    question is on the screen; returns the exit status and all that was shown."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(workspace)
        os.environ.update(COLUMNS="200", TERM="dumb")
        os.execv(sys.executable, [sys.executable, "-m", "tigon", "review", task_id])
    shown = ""
    typed = False
    with os.fdopen(terminal, "r+b", buffering=0) as stream:
        while True:
            try:
                chunk = stream.read(4096)
            except OSError:  # the terminal is gone with its last process
                break
            if not chunk:
                break
            shown += chunk.decode(errors="replace")
            if not typed and "decision:" in shown:
                typed = True
                stream.write("".join(f"{line}\n" for line in type_in(shown)).encode())
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), shown


def choice_that_approves(shown: str) -> str:
    return shown[shown.index("approve ") :][: len("approve ") + 8]


def test_typing_the_hash_approves(workspace: Path, to_approve: str) -> None:
    status, shown = at_terminal(workspace, to_approve, lambda shown: [choice_that_approves(shown)])
    assert status == 0, shown
    assert "double_silu" in shown and "torch.sigmoid" in shown, "the profile is shown whole"
    assert state_of(workspace, to_approve) == "acting"


def test_sending_back_asks_for_a_comment(workspace: Path, to_send_back: str) -> None:
    status, shown = at_terminal(workspace, to_send_back, lambda shown: ["send back", "name it twice_silu"])
    assert status == 0, shown
    assert state_of(workspace, to_send_back) != "acting"
    last = KernelWorkflow(workspace).task_status(to_send_back)
    assert "twice_silu" in last.model_dump_json()


@pytest.mark.parametrize("typed", ["", "yes", "approve", "approve 00000000", "y"])
def test_anything_else_decides_nothing(workspace: Path, pending: str, typed: str) -> None:
    status, shown = at_terminal(workspace, pending, lambda shown: [typed])
    assert status == 0, shown
    assert "Left for now" in shown
    assert state_of(workspace, pending) == "awaiting_profile_review"


@contextmanager
def only_stdin_is_a_terminal() -> Iterator[int]:
    master, slave = pty.openpty()
    try:
        yield slave
    finally:
        os.close(master)
        os.close(slave)


def test_pipes_are_refused(workspace: Path, pending: str) -> None:
    command = [sys.executable, "-m", "tigon", "review", pending]
    piped = subprocess.run(
        command, cwd=workspace, input="approve 00000000\n", capture_output=True, text=True, timeout=60
    )
    with only_stdin_is_a_terminal() as stdin:
        half = subprocess.run(command, cwd=workspace, stdin=stdin, capture_output=True, text=True, timeout=60)
    for refused in (piped, half):
        assert refused.returncode == 1
        assert "needs a human at a terminal" in refused.stderr and " Next: " in refused.stderr
        assert refused.stdout == ""
    assert state_of(workspace, pending) == "awaiting_profile_review"


def test_a_task_that_waits_for_nobody(workspace: Path) -> None:
    status, shown = at_terminal(workspace, "no-such-task", lambda shown: [])
    assert status == 1
    assert "tigon: " in shown and "Next: " in shown and "Traceback" not in shown
