"""Several tasks, and several servers, in one workspace: what one does is not the other's fault, nor its attempt."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from workflow_session import Session, in_session, silent

from tigon.workflow.refusal import Refusal
from tigon.workflow.service import KernelWorkflow

pytestmark = pytest.mark.slow

HOLDS = """
import pathlib, sys, time
from tigon.ledger.run_lock import RunLock

lock = RunLock(pathlib.Path(sys.argv[1]) / ".tigon", sys.argv[2])
print("held", flush=True)
time.sleep(600)
"""
"""Another server in the middle of a run."""


def test_two_tasks_in_one_workspace_do_not_fail_each_others_integrity(liger_workspace: Path) -> None:
    async def body(s: Session) -> None:
        first = await s.scaffolded("swish_beta")
        second = await s.scaffolded("swish_gamma")
        for task in (first, second):
            gates = await s.gates(task, ["integrity", "scaffold_tests"])
            assert {status for status, _ in gates.values()} == {"passed"}
        report = s.flow.report_text(second)
        assert "`src/liger_kernel/ops/__init__.py` | +3 -0" in report, report

        exports = s.root / "src/liger_kernel/transformers/__init__.py"
        text = exports.read_text()
        exports.write_text(text.replace('    "LigerRMSNorm",\n', ""))
        assert "__init__.py (beside the task's own entries)" in (await s.gates(first, ["integrity"]))["integrity"][1]
        exports.write_text(text)

        # The other's line in a file of all kernels, which ruff takes for an unused import now.
        ops = s.root / "src/liger_kernel/ops/__init__.py"
        text = ops.read_text()
        line = "import LigerSwishGammaFunction  # noqa: F401"
        assert line in text
        ops.write_text(text.replace(line, line.removesuffix("  # noqa: F401")))
        assert (await s.gates(first, ["style"]))["style"][0] == "passed"
        assert (await s.gates(second, ["style"]))["style"][0] == "failed"
        ops.write_text(text)

        s.path("swish_gamma").write_text("import no_such_module\n")
        for gates_of_first in (["integrity", "import"], ["judge"]):
            with pytest.raises(Refusal, match=rf"ops/swish_gamma\.py, which is task {second}'s, fails"):
                await s.gates(first, gates_of_first)
        assert s.flow.task_status(first).task["attempts"] == 1  # type: ignore[index]
        status, detail = (await s.gates(second, ["import"]))["import"]
        assert (status, "no_such_module" in detail) == ("failed", True)

        # A file that is gone fails in the file of all kernels, on the line that is its task's.
        s.path("swish_gamma").unlink()
        with pytest.raises(Refusal, match=rf"ops/__init__\.py, which is task {second}'s, fails"):
            await s.gates(first, ["import"])

    in_session(liger_workspace, body)


def test_one_name_is_for_one_task(liger_workspace: Path) -> None:
    async def body(s: Session) -> None:
        first, second, third = await s.emit(), await s.emit(), await s.emit()
        s.say(first)
        with pytest.raises(Refusal, match=f"task {first} is under way for swish_beta as well"):
            s.flow.pending_review(second)
        status = s.flow.task_status(second)
        assert (status.state, first in status.next) == ("understanding", True)

        approve_unseen(s, third)  # as a second server would that was asked at the same moment
        await s.flow.scaffold_kernel(first, silent)
        with pytest.raises(Refusal, match=f"task {first} has written swish_beta"):
            await s.flow.scaffold_kernel(third, silent)

        known = {task.task_id for task in s.flow.task_status(None).tasks or []}
        with pytest.raises(Refusal, match=f"'swish_beta' is taken by task {first}.*No task was opened"):
            await s.emit()
        with pytest.raises(Refusal, match=r"'print' is a built-in of Python.*No task was opened"):
            await s.emit("print")
        with pytest.raises(Refusal, match=rf"Task {second} is as it was"):
            await s.emit("match", task_id=second)
        assert {task.task_id for task in s.flow.task_status(None).tasks or []} == known
        assert await s.emit("swish_gamma", task_id=second) == second

    in_session(liger_workspace, body)


def approve_unseen(s: Session, task_id: str) -> None:
    task = s.flow.store.task(task_id)
    said = {"kind": "profile", "hash": task.profile_hash, "decision": "approved", "channel": "terminal", "comment": ""}
    s.flow.store.append(task, "reviewed", said)


def test_a_task_is_verified_by_one_server_at_a_time(liger_workspace: Path) -> None:
    async def body(s: Session) -> None:
        task = await s.scaffolded()
        s.path().write_text("import no_such_module\n")
        other = KernelWorkflow(s.root)
        first = asyncio.create_task(s.flow.run_verify(task, "cpu", ["import"], silent))
        await asyncio.sleep(0)  # it has begun
        with pytest.raises(
            Refusal, match=rf"another server runs the gates of {task} now \(process {os.getpid()}, since"
        ):
            await other.run_verify(task, "cpu", ["import"], silent)
        assert not (await first).passed
        await other.close()
        assert s.flow.task_status(task).task["attempts"] == 1  # type: ignore[index]

    in_session(liger_workspace, body)


def test_a_server_that_was_killed_keeps_nobody_waiting(liger_workspace: Path) -> None:
    async def body(s: Session) -> None:
        task = await s.scaffolded()
        holder = subprocess.Popen([sys.executable, "-c", HOLDS, str(s.root), task], stdout=subprocess.PIPE)
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        with pytest.raises(Refusal, match=f"process {holder.pid}"):
            await s.gates(task, ["integrity"])
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        holder.stdout.close()
        assert (await s.gates(task, ["integrity"]))["integrity"][0] == "passed"

    in_session(liger_workspace, body)


def test_a_call_after_a_cancelled_one_waits_for_its_end(liger_workspace: Path) -> None:
    async def body(s: Session) -> None:
        task = await s.scaffolded()
        call = asyncio.create_task(s.flow.run_verify(task, "cpu", ["judge"], silent))
        await asyncio.sleep(0.2)  # the judge is at work; however far it is, the next call must not be refused
        call.cancel()
        await asyncio.wait({call})
        assert (await s.gates(task, ["integrity"]))["integrity"][0] == "passed"

    in_session(liger_workspace, body)
