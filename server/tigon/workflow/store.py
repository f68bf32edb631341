"""Tasks in the ledger: read one, append what happened, get back what was frozen."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from tigon.ledger.ledger import Conflict, Event, Ledger
from tigon.workflow.kernel_profile import KernelProfile, kernel_names
from tigon.workflow.refusal import Refusal
from tigon.workflow.tasks import NotAllowed, Task, check_allowed, fold
from tigon.workspace.layout import KernelPaths
from tigon.workspace.render import KernelNames
from tigon_tools.schema.reference import Facts, Reference
from tigon_tools.schema.wire import from_wire

LONGEST_STEM = 40
"""Characters of the operation's name in a task's id, which people type."""


class TaskStore:
    """Every read folds the events again, so a second server's writes are seen."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def close(self) -> None:
        self.ledger.close()

    def task(self, task_id: str) -> Task:
        """Where a task stands.

        Raises:
            Refusal: there is none; lists those there are.
        """
        events = self.ledger.events(task_id)
        if not events:
            known = [task.task_id for task in self.tasks()]
            raise Refusal(
                "task",
                f"there is no task {task_id!r}; "
                + (f"there are {', '.join(known[:10])}." if known else "there are none yet."),
                "open one with emit_profile, or call task_status.",
            )
        return _fold(events)

    def tasks(self) -> list[Task]:
        """All tasks, the one that changed last first."""
        events = sorted(self.ledger.all_events(), key=lambda event: (event.task_id, event.seq))
        folded = [_fold(group) for _, group in groupby(events, key=lambda event: event.task_id)]
        return sorted(folded, key=lambda task: task.updated, reverse=True)

    def files_of_others(self, task: Task) -> dict[str, str]:
        """Paths that other tasks of this workspace wrote, each with the task's id."""
        return {path: other.task_id for other in self._others(task) for path in other.own_files}

    def writer_of(self, operation_name: str, task_id: str) -> str | None:
        """Another task that has written files of this operation and is not done."""
        others = (t for t in self.tasks() if t.task_id != task_id and t.operation_name == operation_name)
        return next((task.task_id for task in others if task.own_files and task.state != "done"), None)

    def underway(self, task_id: str | None) -> dict[str, str]:
        """Operations of other tasks that a human approved or that have written files; done ones are in the files."""
        others = (task for task in self.tasks() if task.task_id != task_id and task.state != "done")
        busy = [task for task in others if task.approved or task.own_files]
        # Of two for one name, the one that has written is the one to go on with.
        return {task.operation_name: task.task_id for task in sorted(busy, key=lambda task: bool(task.own_files))}

    def names_of_others(self, task: Task) -> dict[str, KernelNames]:
        """What the other tasks that wrote in this workspace call things, by task."""
        return {other.task_id: kernel_names(self.profile(other)) for other in self._others(task) if other.own_files}

    def _others(self, task: Task) -> list[Task]:
        return [other for other in self.tasks() if other.task_id != task.task_id]

    def scaffolded_test(self, task: Task) -> str | None:
        """The unit test as it was scaffolded; where the workspace had one already, as that was."""
        if task.test_text:
            return self.ledger.text(task.test_text)
        return self.originals(task).get(KernelPaths.of(task.operation_name).test)

    def new_id(self, operation_name: str) -> str:
        """A name a person can say, that is not taken, and that is safe as a folder whatever the operation is called."""
        stem = re.sub(r"[^a-z0-9]+", "_", operation_name.lower())[:LONGEST_STEM].strip("_") or "kernel"
        while True:
            task_id = f"{stem}-{secrets.token_hex(2)}"
            if not self.ledger.events(task_id):
                return task_id

    def append(self, task: Task, kind: str, payload: Mapping[str, Any], texts: Iterable[str] = ()) -> Task:
        """Add an event; the task after it.

        Raises:
            Refusal: that may not happen now, or another server moved the task since it was read.
        """
        if task.seen:
            try:
                check_allowed(task, kind, payload)
            except NotAllowed as problem:
                raise Refusal("task", str(problem), task.next) from None
        try:
            self.ledger.append(task.task_id, kind, payload, seen=task.seen, texts=texts)
        except Conflict as conflict:
            raise Refusal("ledger", f"{conflict}", "call task_status, then decide again.") from None
        return self.task(task.task_id)

    def profile(self, task: Task) -> KernelProfile:
        return KernelProfile.model_validate_json(self.ledger.text(task.profile_text))

    def reference(self, task: Task) -> Reference:
        """The frozen reference."""
        return from_wire(Reference, json.loads(self.ledger.text(task.reference_text)))

    def facts(self, task: Task) -> Facts:
        return from_wire(Facts, json.loads(self.ledger.text(task.facts_text)))

    def snapshot(self, task: Task) -> dict[str, str]:
        """Path to hash, of the workspace before the first scaffold."""
        snapshot: dict[str, str] = json.loads(self.ledger.text(task.snapshot_text)) if task.snapshot_text else {}
        return snapshot

    def originals(self, task: Task) -> dict[str, str | None]:
        """Text of the planned files before the first scaffold; None where there was no file."""
        originals: dict[str, str | None] = (
            json.loads(self.ledger.text(task.originals_text)) if task.originals_text else {}
        )
        return originals


def _fold(events: Iterable[Event]) -> Task:
    try:
        return fold(events)
    except NotAllowed as problem:
        reason = f"the ledger has events that no Tigon writes: {problem}"
        raise Refusal("ledger", reason, "tell the human: something else wrote in .tigon/ledger.db.") from None
