"""The workflow on a real Liger checkout with real jobs: what a human approved, and what it then guards."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tigon.workflow.refusal import Refusal
from tigon.workflow.service import KernelWorkflow
from tigon.workspace.snapshot import take_snapshot

pytestmark = pytest.mark.slow

SOURCE = "import torch\n\n\ndef {name}(x: torch.Tensor, alpha: float = 1.0) -> torch.Tensor:\n    return x * torch.sigmoid(alpha * x)\n"
QUICK = ["integrity", "scaffold_tests", "style"]
"""Gates that take no job; the judge and the unit tests are in the client's tests of the whole loop."""


DIES_AFTER_TWO_FILES = """
import asyncio, os, pathlib, sys
from tigon.workflow.service import KernelWorkflow
from tigon.workspace import write

real, written = write.replace_file, []

def dying(path, text):
    if len(written) == 2:
        os._exit(9)  # no word to the ledger
    written.append(path)
    real(path, text)

write.replace_file = dying

async def main():
    await KernelWorkflow(pathlib.Path(sys.argv[1])).scaffold_kernel(sys.argv[2], lambda text, fraction: None)

asyncio.run(main())
"""


def silent(text: str, fraction: float) -> None:
    """Nobody listens."""


class Session:
    """A workflow and the human's answers."""

    def __init__(self, root: Path) -> None:
        self.flow = KernelWorkflow(root)
        self.root = root

    async def emit(self, name: str = "swish_beta", task_id: str | None = None, **claims: object) -> str:
        profile = {"operation_name": name, "reference": {"source": SOURCE.format(name=name)}, **claims}
        return (await self.flow.emit_profile("liger-kernel-dev", profile, task_id, silent)).task_id

    def say(self, task_id: str, decision: str = "approved", comment: str = "") -> str:
        shown = self.flow.pending_review(task_id).hash
        return self.flow.record_decision(task_id, shown, decision, "terminal", comment).state  # type: ignore[arg-type]

    async def scaffolded(self, name: str = "swish_beta") -> str:
        task_id = await self.emit(name)
        self.say(task_id)
        await self.flow.scaffold_kernel(task_id, silent)
        return task_id

    async def gates(self, task_id: str, names: list[str]) -> dict[str, tuple[str, str]]:
        answer = await self.flow.run_verify(task_id, "cpu", names, silent)
        return {gate.name: (gate.status, gate.detail) for gate in answer.gates}

    def path(self, task: str = "swish_beta") -> Path:
        return self.root / f"src/liger_kernel/ops/{task}.py"


def in_session(root: Path, body: Callable[[Session], Awaitable[None]]) -> None:
    async def run() -> None:
        session = Session(root)
        try:
            await body(session)
        finally:
            await session.flow.close()

    asyncio.run(run())


def test_nothing_on_disk_changes_before_the_approval_after_a_rejection_or_after_a_change(liger_workspace: Path) -> None:
    async def body(s: Session) -> None:
        before = take_snapshot(s.root)
        task = await s.emit()

        async def refused(reason: str) -> None:
            with pytest.raises(Refusal, match=reason):
                await s.flow.scaffold_kernel(task, silent)
            assert take_snapshot(s.root) == before

        await refused("nobody has approved")
        old = s.flow.pending_review(task).hash
        s.say(task, "pending")
        await refused("nobody has approved")
        assert s.say(task, "rejected", "sweep the hidden size") == "rejected"
        await refused("sent the profile back")
        await s.emit(task_id=task, benchmark_x_label="hidden size")
        with pytest.raises(Refusal, match="it changed while it was shown"):
            s.flow.record_decision(task, old, "approved", "terminal")
        s.say(task)
        await s.emit(task_id=task)
        await refused("nobody has approved")

    in_session(liger_workspace, body)


def test_a_scaffold_twice_changes_nothing_and_keeps_what_a_human_edited(liger_workspace: Path) -> None:
    async def body(s: Session) -> None:
        task = await s.scaffolded()
        before = take_snapshot(s.root)
        again = await s.flow.scaffold_kernel(task, silent)
        assert {f.action for f in again.files} == {"unchanged"}
        assert take_snapshot(s.root) == before

        edited = s.path().read_text() + "\n# By hand.\n"
        s.path().write_text(edited)
        kept = await s.flow.scaffold_kernel(task, silent)
        assert [f.action for f in kept.files if f.path.endswith("ops/swish_beta.py")] == ["kept"]
        assert "Kept as they were" in kept.next
        assert s.path().read_text() == edited

    in_session(liger_workspace, body)


def test_a_scaffold_that_was_killed_half_way_is_completed_and_its_diff_is_whole(liger_workspace: Path) -> None:
    async def body(s: Session) -> None:
        task = await s.emit()
        s.say(task)
        killed = subprocess.run([sys.executable, "-c", DIES_AFTER_TWO_FILES, str(s.root), task], timeout=120)
        assert killed.returncode == 9
        assert s.path().exists()
        assert not (s.root / "test/transformers/test_swish_beta.py").exists()

        assert await s.emit(task_id=task) == task  # its own half is not in its way
        actions = {f.path: f.action for f in (await s.flow.scaffold_kernel(task, silent)).files}
        assert actions["src/liger_kernel/ops/swish_beta.py"] == "unchanged"
        assert actions["test/transformers/test_swish_beta.py"] == "created"
        originals = s.flow.store.originals(s.flow.store.task(task))
        assert originals["src/liger_kernel/ops/swish_beta.py"] is None
        assert "swish_beta" not in str(originals["src/liger_kernel/ops/__init__.py"])
        assert (await s.gates(task, QUICK))["integrity"][0] == "passed"

    in_session(liger_workspace, body)


def test_the_integrity_gate_sees_every_change_outside_the_plan(liger_workspace: Path) -> None:
    async def body(s: Session) -> None:
        task = await s.scaffolded()
        assert {status for status, _ in (await s.gates(task, QUICK)).values()} == {"passed"}

        foreign = s.root / "test/transformers/conftest.py"
        foreign.write_text("collect_ignore_glob = ['*']\n")
        status, detail = (await s.gates(task, ["integrity"]))["integrity"]
        assert (status, "test/transformers/conftest.py" in detail) == ("failed", True)
        foreign.unlink()

        test = s.root / "test/transformers/test_swish_beta.py"
        text = test.read_text()
        test.write_text(text.replace("1e-5", "1e5"))
        assert (await s.gates(task, QUICK))["scaffold_tests"][0] == "flagged"
        test.unlink()
        gone = await s.gates(task, QUICK)
        assert "are gone" in gone["integrity"][1]
        assert gone["scaffold_tests"][0] == "flagged"
        assert s.flow.task_status(task).task["attempts"] == 2  # type: ignore[index]

    in_session(liger_workspace, body)


def test_a_test_that_was_there_before_is_kept_and_watched(without_relu_squared: Path) -> None:
    async def body(s: Session) -> None:
        task = await s.scaffolded("relu_squared")
        test = s.root / "test/transformers/test_relu_squared.py"
        assert (await s.gates(task, QUICK))["scaffold_tests"][0] == "passed"
        test.write_text("def test_nothing():\n    pass\n")
        status, detail = (await s.gates(task, QUICK))["scaffold_tests"]
        assert (status, "test_relu_squared.py" in detail) == ("flagged", True)

    in_session(without_relu_squared, body)


def test_two_tasks_in_one_workspace_do_not_fail_each_others_integrity(liger_workspace: Path) -> None:
    async def body(s: Session) -> None:
        first = await s.scaffolded("swish_beta")
        second = await s.scaffolded("swish_gamma")
        for task in (first, second):
            assert (await s.gates(task, ["integrity"]))["integrity"][0] == "passed"

    in_session(liger_workspace, body)


def test_a_task_keeps_its_name_once_it_has_files(liger_workspace: Path) -> None:
    async def body(s: Session) -> None:
        task = await s.scaffolded()
        with pytest.raises(Refusal, match="has written files for swish_beta, so it cannot become other"):
            await s.emit("other", task_id=task)
        with pytest.raises(Refusal, match="'liger-autopatch' is not part of this version"):
            await s.flow.emit_profile("liger-autopatch", {}, None, silent)

    in_session(liger_workspace, body)


def test_readable_copies_are_written_again_from_the_ledger(liger_workspace: Path) -> None:
    async def body(s: Session) -> None:
        task = await s.scaffolded()
        await s.gates(task, ["integrity"])
        folder = s.root / ".tigon/tasks" / task
        texts = {name: (folder / name).read_text() for name in ("profile.md", "report.md")}
        shutil.rmtree(folder)
        assert s.flow.profile_text(task) == texts["profile.md"] == (folder / "profile.md").read_text()
        assert s.flow.report_text(task) == texts["report.md"] == (folder / "report.md").read_text()
        assert texts["report.md"].splitlines()[2].startswith("The chosen gates passed (integrity)")

    in_session(liger_workspace, body)


def test_finish_needs_a_pass_on_exactly_these_files(liger_workspace: Path) -> None:
    async def body(s: Session) -> None:
        task = await s.scaffolded()
        with pytest.raises(Refusal, match="its gates have not all passed"):
            s.flow.check_final(task)
        while (answer := await s.flow.run_verify(task, "cpu", None, silent)).running:
            pass
        assert (answer.passed, answer.state, answer.attempt) == (True, "awaiting_final_review", 1), answer.gates
        question = s.flow.pending_review(task)
        assert "+++ b/src/liger_kernel/ops/swish_beta.py" in question.text

        text = s.path().read_text()
        s.path().write_text(text + "# late\n")
        with pytest.raises(Refusal, match="files have changed since run_verify passed"):
            s.flow.finish(task, question.hash, "approved", "terminal")
        s.path().write_text(text)
        makefile = (s.root / "Makefile").read_bytes()
        (s.root / "Makefile").write_text("all:\n")
        with pytest.raises(Refusal, match="changed outside the plan since run_verify passed: Makefile"):
            s.flow.finish(task, question.hash, "approved", "terminal")
        (s.root / "Makefile").write_bytes(makefile)
        with pytest.raises(Refusal, match="it changed while it was shown"):
            s.flow.finish(task, "0" * 64, "approved", "terminal")
        assert s.flow.finish(task, question.hash, "approved", "terminal").state == "done"

    in_session(liger_workspace, body)
