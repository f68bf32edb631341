"""Where a task stands by what else there is: the files on disk, and the other tasks of the workspace.

The ledger says what happened to a task; this says whether that still holds. A pass is of the files that were
there, and says nothing of what came after: held to it are the task's own files, and its own entries in the files
that all kernels share. Every answer about a task's state comes through here, so that they all say the same.
"""

from __future__ import annotations

from tigon.workflow.answers import TaskState
from tigon.workflow.integrity import files_hash, foreign_changes, own_digests
from tigon.workflow.kernel_profile import kernel_names
from tigon.workflow.store import TaskStore
from tigon.workflow.tasks import Task
from tigon.workspace.layout import Workspace

LISTED = 5
"""Paths in a sentence; `git status` has all."""


def drift(workspace: Workspace, store: TaskStore, task: Task) -> str | None:
    """What has changed since the pass that a human decides on, or has accepted, as a clause; None where nothing has.

    Files outside the plan count until the task is done: what it was verified beside is part of the verdict.
    """
    if task.state not in ("awaiting_final_review", "done"):
        return None
    names = kernel_names(store.profile(task))
    digests = own_digests(workspace, names)
    if files_hash(digests) != task.verified_files:
        changed = [path for path, own in digests.items() if task.verified_digests.get(path, own) != own]
        return f"the files have changed since run_verify passed{_listed(changed)}"
    if task.state == "done":
        return None
    foreign = foreign_changes(
        workspace,
        names,
        store.snapshot(task),
        store.originals(task),
        store.files_of_others(task),
        [*store.names_of_others(task).values()],
    )
    return f"changed outside the plan since run_verify passed{_listed(foreign)}" if foreign else None


def _listed(paths: list[str]) -> str:
    more = f" and {len(paths) - LISTED} more" if len(paths) > LISTED else ""
    return f": {', '.join(paths[:LISTED])}{more}" if paths else ""


def rival(store: TaskStore, task: Task) -> str | None:
    """Another task that is under way for the name of a profile that waits for review, as a clause."""
    if task.state != "awaiting_profile_review":
        return None
    other = store.underway(task.task_id).get(task.operation_name)
    return None if other is None else f"task {other} is under way for {task.operation_name} as well"


def standing(workspace: Workspace, store: TaskStore, task: Task) -> tuple[TaskState, str]:
    """The state and what comes next."""
    other = rival(store, task)
    if other is not None:
        step = f"go on with that, or revise {task.task_id} under another operation_name"
        return "understanding", f"assistant: {other}; {step}."
    changed = drift(workspace, store, task)
    if changed is None:
        return task.state, task.next
    if task.state == "done":
        return "done", f"{task.next} Note: {changed}. Neither the gates nor the human have seen that."
    return "verifying", f"assistant: {changed}, so that pass is void; call run_verify for {task.task_id} again."
