"""A task's state, folded from its events. The only place that says what leads to what.

Invariants, whoever writes the events:
- Only a human's "approved" for the current hash leads out of a review, and a changed profile voids it.
- A run of the gates counts for the profile it ran on, and for no other.
- `done` is final; `blocked` is left through a human's reset only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tigon.ledger.ledger import Event
from tigon.workflow.answers import TaskState

MAX_ATTEMPTS = 3
"""Failed runs of the hard gates before a human has to look (Liger's own skill retries three times)."""

_WORKING: frozenset[TaskState] = frozenset({"acting", "verifying", "awaiting_final_review"})

ALLOWED: dict[str, frozenset[TaskState]] = {
    "profile_emitted": _WORKING | {"understanding", "awaiting_profile_review", "rejected"},
    "reviewed profile": frozenset({"awaiting_profile_review"}),
    "reviewed reset": frozenset({"blocked"}),
    "reviewed final": frozenset({"awaiting_final_review"}),
    "scaffold_begun": _WORKING,
    "scaffold_undone": _WORKING,
    "scaffolded": _WORKING,
    "verified": _WORKING,
}
"""The states in which each event may happen; a review's with what it decides."""


class NotAllowed(Exception):
    """An event that cannot happen now; nothing was recorded."""


def check_allowed(task: Task, kind: str, payload: Mapping[str, Any]) -> None:
    """Whether an event may follow.

    Raises:
        NotAllowed: says why.
    """
    name = f"reviewed {payload['kind']}" if kind == "reviewed" else kind
    if task.state not in ALLOWED[name]:
        raise NotAllowed(f"task {task.task_id} is {task.state}, so it cannot be {name.replace('_', ' ')} now.")
    if kind == "profile_emitted":
        return
    shown = payload["hash"] if name == "reviewed profile" else payload.get("profile_hash", task.profile_hash)
    if shown != task.profile_hash:
        raise NotAllowed(f"the profile of task {task.task_id} has changed to {task.profile_hash[:8]} since.")


@dataclass
class Task:
    """Where a task stands.

    profile_hash: of profile and reference together. approved_hash: the one a human approved; "" once it changes.
    scaffolded: path to digest of what was written; intended: the same for a scaffold that was begun.
    scaffolded_for: the profile that the last scaffold was of. test_text: the unit test as scaffolded.
    verified_files: hash of the planned files at the last full pass. verified_digests: of each of them.
    attempts: failed runs since the profile, a reset or a final review gave three new ones.
    """

    task_id: str
    workflow: str = ""
    operation_name: str = ""
    state: TaskState = "understanding"
    seen: int = 0
    updated: str = ""
    profile_hash: str = ""
    profile_text: str = ""
    reference_text: str = ""
    facts_text: str = ""
    claimed: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    approved_hash: str = ""
    reviews: list[dict[str, Any]] = field(default_factory=list)
    scaffolded: dict[str, str] = field(default_factory=dict)
    intended: dict[str, str] = field(default_factory=dict)
    scaffolded_for: str = ""
    test_text: str = ""
    snapshot_text: str = ""
    originals_text: str = ""
    verified_files: str = ""
    verified_digests: dict[str, str] = field(default_factory=dict)
    attempts: int = 0
    last_gates: list[dict[str, Any]] = field(default_factory=list)
    report_text: str = ""
    comment: str = ""

    @property
    def approved(self) -> bool:
        """A human approved exactly what is there now."""
        return bool(self.profile_hash) and self.approved_hash == self.profile_hash

    @property
    def attempts_left(self) -> int:
        return max(0, MAX_ATTEMPTS - self.attempts)

    @property
    def decisions(self) -> int:
        """How often a human has decided."""
        return sum(review["decision"] != "pending" for review in self.reviews)

    @property
    def own_files(self) -> dict[str, str]:
        """Path to digest of what this task wrote, or was writing when it was cut off."""
        return {**self.intended, **self.scaffolded}

    @property
    def is_scaffolded(self) -> bool:
        """The files of the profile as it is now are written."""
        return bool(self.scaffolded) and self.scaffolded_for == self.profile_hash

    @property
    def next(self) -> str:
        """What to do now, and who does it."""
        return _NEXT[self._situation].format(
            task=self.task_id,
            left=_attempts(self.attempts_left),
            comment=self.comment or "none",
            failed=", ".join(gate["name"] for gate in self.last_gates if gate["status"] == "failed"),
        )

    @property
    def _situation(self) -> str:
        decided = [review["kind"] for review in self.reviews if review["decision"] != "pending"]
        if self.state == "acting" and decided[-1:] == ["final"]:
            return "sent back"
        if self.state == "verifying" and any(gate["status"] == "failed" for gate in self.last_gates):
            return "failed"
        return self.state


def _attempts(left: int) -> str:
    return "1 failed attempt is left" if left == 1 else f"{left} failed attempts are left"


_NEXT: dict[str, str] = {
    "understanding": "assistant: correct the profile's problems with emit_profile, task_id {task}.",
    "awaiting_profile_review": "human: decide on the profile. assistant: call request_review for {task}; "
    "where that cannot ask, tell the human to run `tigon review {task}`.",
    "acting": "assistant: call scaffold_kernel for {task}, read what it wrote, then run_verify.",
    "sent back": "assistant: the human sent the work back (comment: {comment}). Change the files, then run_verify for {task}.",
    "verifying": "assistant: read and finish what was scaffolded, then call run_verify for {task}; {left}.",
    "failed": "assistant: mend what failed ({failed}) at its cause, then call run_verify for {task}; {left}.",
    "awaiting_final_review": "human: decide on diff and report. assistant: call finish_task for {task}; "
    "where that cannot ask, tell the human to run `tigon review {task}`.",
    "done": "nobody: the task is done. The files are the human's to commit.",
    "blocked": "human: three attempts failed. Look at the report, then `tigon review {task}` or request_review resets it.",
    "rejected": "assistant: the human sent the profile back (comment: {comment}). Revise it with emit_profile, task_id {task}.",
}


def fold(events: Iterable[Event]) -> Task:
    """The state after all events.

    Raises:
        ValueError: no events.
        NotAllowed: events in an order that no Tigon writes.
    """
    task: Task | None = None
    for event in events:
        task = task or Task(event.task_id)
        if task.seen:
            check_allowed(task, event.kind, event.payload)
        _APPLY[event.kind](task, event.payload)
        task.seen, task.updated = event.seq, event.time
    if task is None:
        raise ValueError("a task without events")
    return task


def _emitted(task: Task, payload: dict[str, Any]) -> None:
    same = payload["profile_hash"] == task.profile_hash
    task.workflow, task.operation_name = payload["workflow"], payload["operation_name"]
    task.profile_hash, task.profile_text = payload["profile_hash"], payload["profile"]
    task.reference_text, task.facts_text = payload["reference"], payload["facts"]
    task.claimed, task.problems = tuple(payload["claimed"]), tuple(payload["problems"])
    if same and task.approved:
        return  # nothing has changed, so the approval and the work done since stand
    task.approved_hash = ""  # also where an older profile comes back: the human has seen another since
    task.attempts = 0
    task.verified_files = ""
    task.state = "understanding" if task.problems else "awaiting_profile_review"


def _reviewed(task: Task, payload: dict[str, Any]) -> None:
    task.reviews.append(payload)
    decision, kind = payload["decision"], payload["kind"]
    if decision == "pending":
        return
    task.comment = payload["comment"]
    if kind == "profile":
        if decision == "approved":
            task.approved_hash = payload["hash"]
            task.state = "acting"
        else:
            task.state = "rejected"
    elif kind == "reset":
        if decision == "approved":
            task.attempts = 0
            task.state = "verifying"
    elif decision == "approved":
        task.state = "done"
    else:
        task.verified_files = ""
        task.attempts = 0
        task.state = "acting"


def _scaffold_begun(task: Task, payload: dict[str, Any]) -> None:
    task.intended = dict(payload["files"])
    if not task.snapshot_text:
        task.snapshot_text, task.originals_text = payload["snapshot"], payload["originals"]


def _scaffold_undone(task: Task, payload: dict[str, Any]) -> None:
    task.intended = {}
    if not task.scaffolded:
        task.snapshot_text = task.originals_text = ""


def _scaffolded(task: Task, payload: dict[str, Any]) -> None:
    task.scaffolded = dict(payload["files"])
    task.intended = {}
    task.scaffolded_for = payload["profile_hash"]
    task.test_text = payload.get("test", "")  # absent in ledgers of the first version
    task.verified_files = ""
    task.state = "verifying"


def _verified(task: Task, payload: dict[str, Any]) -> None:
    task.last_gates = payload["gates"]
    task.report_text = payload["report"]
    if payload["passed"] and payload["whole"]:
        task.verified_files = payload["files"]
        task.verified_digests = payload.get("digests", {})  # absent in ledgers of the first version
        task.state = "awaiting_final_review"
    elif not payload["passed"]:
        task.verified_files = ""
        if payload.get("decisions", task.decisions) == task.decisions:
            # Two servers may run the gates at once: the runs have one number, and count once. A run from before a
            # human's decision counts no more.
            task.attempts = max(task.attempts, payload.get("attempt", task.attempts + 1))
        task.state = "blocked" if task.attempts >= MAX_ATTEMPTS else "verifying"


_APPLY = {
    "profile_emitted": _emitted,
    "reviewed": _reviewed,
    "scaffold_begun": _scaffold_begun,
    "scaffold_undone": _scaffold_undone,
    "scaffolded": _scaffolded,
    "verified": _verified,
}
