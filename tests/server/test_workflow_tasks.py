"""The state machine over a real ledger: what leads where, and what can never happen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tigon.ledger.ledger import Ledger
from tigon.workflow.refusal import Refusal
from tigon.workflow.store import TaskStore
from tigon.workflow.tasks import MAX_ATTEMPTS, NotAllowed, Task, fold

PROFILE = {
    "workflow": "liger-kernel-dev",
    "operation_name": "mish",
    "profile": "p",
    "reference": "r",
    "facts": "f",
    "claimed": [],
}


class Played:
    """A task moved by the events that the workflow writes."""

    def __init__(self, store: TaskStore) -> None:
        self.store = store
        self.task = Task("mish-0001")

    def emit(self, version: str, problems: tuple[str, ...] = ()) -> Task:
        return self._append("profile_emitted", {**PROFILE, "profile_hash": version, "problems": problems})

    def review(self, kind: str, decision: str, shown: str | None = None, comment: str = "") -> Task:
        payload = {"kind": kind, "hash": shown or self.task.profile_hash, "decision": decision, "channel": "terminal"}
        return self._append("reviewed", {**payload, "comment": comment})

    def begin(self, **files: str) -> Task:
        payload = {"profile_hash": self.task.profile_hash, "files": files, "snapshot": "s", "originals": "o"}
        return self._append("scaffold_begun", payload)

    def scaffold(self, **files: str) -> Task:
        payload = {"profile_hash": self.task.profile_hash, "files": files or {"a.py": "1"}, "actions": {}}
        return self._append("scaffolded", payload)

    def verify(self, passed: bool, whole: bool = True, of: str | None = None, **run: int) -> Task:
        gates = [{"name": "judge", "kind": "hard", "status": "passed" if passed else "failed", "detail": ""}]
        payload = {
            "passed": passed,
            "whole": whole,
            "gates": gates,
            "files": "f1",
            "report": "r1",
            "device": "cpu",
            **run,
        }
        return self._append("verified", {**payload, "profile_hash": of or self.task.profile_hash})

    def _append(self, kind: str, payload: dict[str, Any]) -> Task:
        self.task = self.store.append(self.task, kind, payload)
        return self.task

    def scaffolded(self) -> Played:
        self.emit("A")
        self.review("profile", "approved")
        self.scaffold()
        return self


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    ledger = Ledger(tmp_path / ".tigon")
    yield Played(TaskStore(ledger))
    ledger.close()


def test_the_way_from_profile_to_done(played: Played) -> None:
    assert played.emit("A").state == "awaiting_profile_review"
    assert played.review("profile", "approved").state == "acting"
    assert played.scaffold().state == "verifying"
    assert played.verify(True).state == "awaiting_final_review"
    done = played.review("final", "approved", shown="final")
    assert done.state == "done"
    assert "nobody" in done.next


def test_a_profile_with_problems_waits_for_the_assistant(played: Played) -> None:
    assert played.emit("A", ("tier 2 is claimed",)).state == "understanding"
    with pytest.raises(Refusal, match="is understanding, so it cannot be reviewed profile now"):
        played.review("profile", "approved")
    assert played.emit("B").state == "awaiting_profile_review"


def test_pending_is_recorded_and_decides_nothing(played: Played) -> None:
    played.emit("A")
    for _ in range(3):
        task = played.review("profile", "pending")
    assert task.state == "awaiting_profile_review"
    assert not task.approved
    assert [r["decision"] for r in task.reviews] == ["pending"] * 3
    assert played.review("profile", "approved").approved


def test_a_profile_sent_back_says_why_and_waits_for_another(played: Played) -> None:
    played.emit("A")
    task = played.review("profile", "rejected", comment="use {eps}, please")
    assert task.state == "rejected"
    assert "use {eps}, please" in task.next
    assert played.emit("B").state == "awaiting_profile_review"


def test_a_change_voids_the_approval_and_going_back_does_not_restore_it(played: Played) -> None:
    played.scaffolded()
    changed = played.emit("B")
    assert (changed.state, changed.approved) == ("awaiting_profile_review", False)
    back = played.emit("A")
    assert (back.state, back.approved) == ("awaiting_profile_review", False)


def test_the_same_profile_again_keeps_approval_and_work(played: Played) -> None:
    played.scaffolded()
    played.verify(False)
    task = played.emit("A")
    assert (task.state, task.approved, task.attempts) == ("verifying", True, 1)


def test_an_approval_of_another_hash_is_refused(played: Played) -> None:
    played.emit("A")
    played.emit("B")
    with pytest.raises(Refusal, match="has changed to B since"):
        played.review("profile", "approved", shown="A")


@pytest.mark.parametrize("event", ["begin", "scaffold", "verify"])
@pytest.mark.parametrize("before", ["emitted", "rejected", "revised", "blocked", "done"])
def test_nothing_is_written_or_verified_without_the_current_approval(played: Played, event: str, before: str) -> None:
    if before in ("emitted", "rejected"):
        played.emit("A")
        if before == "rejected":
            played.review("profile", "rejected")
    else:
        played.scaffolded()
        if before == "revised":
            played.emit("B")
        elif before == "blocked":
            for _ in range(MAX_ATTEMPTS):
                played.verify(False)
        else:
            played.verify(True)
            played.review("final", "approved", shown="final")
    seen = played.task.seen

    with pytest.raises(Refusal):
        played.verify(True) if event == "verify" else getattr(played, event)()

    assert played.store.task("mish-0001").seen == seen


def test_a_run_on_an_older_profile_counts_for_nothing(played: Played) -> None:
    """The profile is revised and approved while the gates run: their pass is not the new one's."""
    played.scaffolded()
    played.emit("B")
    played.review("profile", "approved")
    with pytest.raises(Refusal, match="has changed to B since"):
        played.verify(True, of="A")
    assert played.store.task("mish-0001").state == "acting"


def test_a_new_profile_needs_its_own_scaffold(played: Played) -> None:
    played.scaffolded()
    played.emit("B")
    task = played.review("profile", "approved")
    assert not task.is_scaffolded
    assert "scaffold_kernel" in task.next
    assert played.scaffold().is_scaffolded


def test_three_failures_block_and_only_a_humans_reset_frees(played: Played) -> None:
    played.scaffolded()
    assert played.verify(False).attempts_left == 2
    task = played.verify(False)
    assert "1 failed attempt is left" in task.next
    assert "judge" in task.next
    assert played.verify(False).state == "blocked"
    with pytest.raises(Refusal, match="is blocked"):
        played.emit("B")
    assert played.review("reset", "rejected", shown="x").state == "blocked"
    assert played.review("reset", "pending", shown="x").state == "blocked"
    freed = played.review("reset", "approved", shown="x")
    assert (freed.state, freed.attempts_left) == ("verifying", 3)


def test_runs_at_once_count_once_and_one_from_before_a_decision_not_at_all(played: Played) -> None:
    played.scaffolded()
    early = {"attempt": 1, "decisions": 1}
    assert played.verify(False, **early).attempts == 1
    assert played.verify(False, **early).attempts == 1
    assert played.verify(False, attempt=2, decisions=1).attempts == 2
    assert played.verify(False, attempt=3, decisions=1).state == "blocked"
    assert played.review("reset", "approved", shown="x").attempts == 0
    assert played.verify(False, attempt=3, decisions=1).attempts == 0


def test_a_subset_that_passes_does_not_finish_and_one_that_fails_counts(played: Played) -> None:
    played.scaffolded()
    assert played.verify(True, whole=False).state == "verifying"
    task = played.verify(False, whole=False)
    assert (task.state, task.attempts) == ("verifying", 1)


def test_work_sent_back_at_the_end_can_be_verified_again_with_three_attempts(played: Played) -> None:
    played.scaffolded()
    played.verify(False)
    played.verify(True)
    task = played.review("final", "rejected", shown="final", comment="rename p")
    assert (task.state, task.attempts_left) == ("acting", 3)
    assert "rename p" in task.next
    assert played.verify(True).state == "awaiting_final_review"


def test_a_scaffold_after_the_pass_asks_for_another_run(played: Played) -> None:
    played.scaffolded()
    played.verify(True)
    task = played.scaffold(**{"a.py": "2"})
    assert (task.state, task.verified_files) == ("verifying", "")


def test_a_scaffold_that_was_cut_off_still_owns_its_files(played: Played) -> None:
    played.emit("A")
    played.review("profile", "approved")
    task = played.begin(**{"a.py": "1"})
    assert (task.own_files, task.is_scaffolded, task.snapshot_text) == ({"a.py": "1"}, False, "s")


def test_two_servers_cannot_both_move_a_task(played: Played, tmp_path: Path) -> None:
    played.emit("A")
    other = Played(TaskStore(Ledger(tmp_path / ".tigon")))
    other.task = played.task
    other.review("profile", "rejected")
    with pytest.raises(Refusal, match="task mish-0001 has gone on"):
        played.review("profile", "approved")
    assert played.store.task("mish-0001").state == "rejected"


def test_events_in_an_order_that_no_tigon_writes_are_refused_when_read(played: Played) -> None:
    """Somebody who appends to the database by hand does not get past the table."""
    played.emit("A")
    files = {"profile_hash": "A", "files": {"a.py": "1"}, "actions": {}}
    played.store.ledger.append("mish-0001", "scaffolded", files, seen=1)
    with pytest.raises(NotAllowed):
        fold(played.store.ledger.events("mish-0001"))
    with pytest.raises(Refusal, match="events that no Tigon writes"):
        played.store.task("mish-0001")


@pytest.mark.parametrize("name", ["mish", "../../etc/passwd", "x" * 300, "", "Größe", "a b"])
def test_a_task_id_is_safe_as_a_folder_whatever_the_operation_is_called(played: Played, name: str) -> None:
    made = played.store.new_id(name)
    assert len(made) <= 45
    assert all(c.isascii() and (c.isalnum() or c in "_-") for c in made)
    assert made[0].isalnum()


def test_an_unknown_task_is_refused_with_those_there_are(played: Played) -> None:
    played.emit("A")
    with pytest.raises(Refusal, match=r"no task 'mish'; there are mish-0001"):
        played.store.task("mish")
