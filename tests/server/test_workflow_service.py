"""The workflow on a real Liger checkout with real jobs: what a human approved, and what it then guards."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from workflow_session import QUICK, Session, in_session, profile_of, silent

from tigon.workflow.refusal import Refusal
from tigon.workspace.snapshot import take_snapshot
from tigon_tools.gpus import has_driver

pytestmark = pytest.mark.slow

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
        test.write_text(text + "\n\ndef test_more():\n    assert _inputs((2, 3), torch.float32)\n")
        more = await s.gates(task, ["integrity", "scaffold_tests"])
        assert (more["integrity"][0], more["scaffold_tests"][0]) == ("passed", "flagged")
        test.write_text(text.replace("1e-5", "1e5"))
        status, detail = (await s.gates(task, QUICK))["integrity"]
        assert (status, "DTYPES is changed or gone" in detail) == ("failed", True)
        test.unlink()
        gone = await s.gates(task, QUICK)
        assert "are gone" in gone["integrity"][1]
        assert gone["scaffold_tests"][0] == "flagged"
        assert s.flow.task_status(task).task["attempts"] == 3  # type: ignore[index]

    in_session(liger_workspace, body)


def test_a_test_that_was_there_before_is_kept_and_watched(without_relu_squared: Path) -> None:
    async def body(s: Session) -> None:
        task = await s.scaffolded("relu_squared")
        test = s.root / "test/transformers/test_relu_squared.py"
        assert (await s.gates(task, QUICK))["scaffold_tests"][0] == "passed"
        test.write_text("def test_nothing():\n    pass\n")
        gates = await s.gates(task, QUICK)
        for gate, wanted in (("scaffold_tests", "flagged"), ("integrity", "failed")):
            status, detail = gates[gate]
            assert (status, "test_relu_squared.py" in detail) == (wanted, True)

    in_session(without_relu_squared, body)


def test_what_cannot_be_scaffolded_does_not_go_to_review(liger_workspace: Path) -> None:
    async def body(s: Session) -> None:
        source = "import torch\n\n\ndef turned(x: torch.Tensor) -> torch.Tensor:\n    return x * x.transpose(-1, -2)\n"
        inputs = [{"name": "x", "shape": [8, 8]}]
        profile = {"operation_name": "turned", "reference": {"source": source, "inputs": inputs}}
        answer = await s.flow.emit_profile("liger-kernel-dev", profile, None, silent)
        assert answer.state == "understanding"
        assert any("no kernel can be scaffolded" in p and "permute" in p for p in answer.problems), answer.problems

        # What only planning the files finds.
        exports = s.root / "src/liger_kernel/transformers/__init__.py"
        exports.write_text(exports.read_text().replace("__all__", "__names__"))
        answer = await s.flow.emit_profile("liger-kernel-dev", profile_of("swish_beta"), None, silent)
        assert answer.state == "understanding"
        assert answer.problems == [
            "no kernel can be scaffolded for this reference: "
            "src/liger_kernel/transformers/__init__.py has no list __all__."
        ]
        with pytest.raises(Refusal, match="nothing of task"):
            s.flow.pending_review(answer.task_id)

    in_session(liger_workspace, body)


def test_generated_tests_that_an_added_line_skips_are_no_pass(liger_workspace: Path) -> None:
    async def body(s: Session) -> None:
        task = await s.scaffolded()
        test = s.root / "test/transformers/test_swish_beta.py"
        skips = "def setup_function(function):\n    if 'liger' in function.__name__:\n        pytest.skip()\n"
        test.write_text(f"{test.read_text()}\n\n{skips}\n\ndef test_added():\n    assert device\n")
        status, detail = (await s.gates(task, ["integrity", "unit_tests"]))["unit_tests"]
        assert (status, "No case of test_liger_swish_beta_correctness" in detail) == ("failed", True), detail

    in_session(liger_workspace, body)


@pytest.mark.skipif(has_driver(), reason="is about machines without a GPU")
def test_a_gpu_that_is_not_there_costs_nothing(liger_workspace: Path) -> None:
    async def body(s: Session) -> None:
        task = await s.scaffolded()
        with pytest.raises(Refusal, match="no GPU that torch can use"):
            await s.flow.run_verify(task, "cuda", None, silent)
        status = s.flow.task_status(task).task
        assert status is not None
        assert (status["attempts"], status["report_path"]) == (0, None)

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
        status = s.flow.task_status(task)
        assert (status.state, "that pass is void" in status.next) == ("verifying", True)
        assert "passed: src/liger_kernel/ops/swish_beta.py, so" in status.next
        assert [t.state for t in s.flow.task_status(None).tasks or []] == ["verifying"]
        s.path().write_text(text)
        assert s.flow.task_status(task).state == "awaiting_final_review"
        makefile = (s.root / "Makefile").read_bytes()
        (s.root / "Makefile").write_text("all:\n")
        with pytest.raises(Refusal, match="changed outside the plan since run_verify passed: Makefile"):
            s.flow.finish(task, question.hash, "approved", "terminal")
        (s.root / "Makefile").write_bytes(makefile)
        with pytest.raises(Refusal, match="it changed while it was shown"):
            s.flow.finish(task, "0" * 64, "approved", "terminal")
        # What another task writes in the shared files takes nothing from this pass.
        await s.scaffolded("swish_gamma")
        assert s.flow.task_status(task).state == "awaiting_final_review"
        assert s.flow.pending_review(task).hash == question.hash
        assert s.flow.finish(task, question.hash, "approved", "terminal").state == "done"
        with pytest.raises(Refusal, match="is done already"):
            s.flow.check_final(task)
        assert "Note" not in s.flow.task_status(task).next
        s.path().write_text(text + "# later\n")
        after = s.flow.task_status(task)
        assert (after.state, "passed: src/liger_kernel/ops/swish_beta.py. Neither" in after.next) == ("done", True)

    in_session(liger_workspace, body)
