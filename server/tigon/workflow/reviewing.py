"""Decide: what waits for a human, and what became of it. Nothing here is reachable by a model's say-so:
a decision is recorded with the channel it came through, for one hash."""

from __future__ import annotations

import hashlib

from tigon.workflow import records
from tigon.workflow.answers import Decision, ReviewAnswer
from tigon.workflow.questions import ReviewQuestion
from tigon.workflow.refusal import Refusal
from tigon.workflow.standing import drift, rival, standing
from tigon.workflow.store import TaskStore
from tigon.workflow.tasks import Task
from tigon.workflow.understanding import write_profile
from tigon.workspace.layout import Workspace


def pending(workspace: Workspace, store: TaskStore, task_id: str) -> ReviewQuestion:
    """What waits for a human in this task.

    Raises:
        Refusal: nothing does.
    """
    task = store.task(task_id)
    other = rival(store, task)
    if other is not None:
        raise Refusal("profile_review", f"{other}.", standing(workspace, store, task)[1])
    if task.state == "awaiting_profile_review":
        text = write_profile(workspace, store, task)
        return ReviewQuestion("profile", task.profile_hash, f"Approve the profile of {task.operation_name}?", text)
    if task.state == "blocked":
        report = store.ledger.text(task.report_text)
        title = f"{task.operation_name} failed three times. Allow three more attempts?"
        return ReviewQuestion("reset", _hash("reset", task), title, report)
    if task.state == "awaiting_final_review":
        return _final(workspace, store, task)
    raise Refusal("review", f"nothing of task {task_id} waits for a human; it is {task.state}.", task.next)


def _final(workspace: Workspace, store: TaskStore, task: Task) -> ReviewQuestion:
    changed = drift(workspace, store, task)
    if changed is not None:
        raise Refusal("final_review", f"{changed}.", standing(workspace, store, task)[1])
    report = store.ledger.text(task.report_text)
    diff = records.render_diff(workspace, task.operation_name, store.originals(task))
    text = f"{report}\n## Diff\n\n{records.fenced(diff, 'diff')}\n"
    return ReviewQuestion("final", _hash("final", task), f"Accept {task.operation_name} as it is?", text)


def _hash(kind: str, task: Task) -> str:
    """Of what is decided: the profile, the files and the report, and the decision it would be in the task's life."""
    parts = (kind, task.task_id, task.profile_hash, task.verified_files, task.report_text, str(task.decisions))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def record(
    workspace: Workspace,
    store: TaskStore,
    task_id: str,
    shown: str,
    decision: Decision,
    channel: str,
    comment: str,
) -> tuple[Task, ReviewAnswer]:
    """Record an answer to the question with hash `shown`.

    Raises:
        Refusal: nothing is pending, or what is pending is not what was shown.
    """
    task = store.task(task_id)
    question = pending(workspace, store, task_id)
    if shown != question.hash:
        raise Refusal(
            "review",
            f"the answer is for {shown[:8]}, and what waits now is {question.hash[:8]}: it changed while it was shown.",
            f"ask again: request_review for {task_id}.",
        )
    payload = {
        "kind": question.kind,
        "hash": shown,
        "decision": decision,
        "channel": channel,
        "comment": comment,
    }
    task = store.append(task, "reviewed", payload)
    step = task.next if decision != "pending" else _when_pending(task, channel)
    answer = ReviewAnswer(
        state=task.state,
        next=step,
        task_id=task_id,
        decision=decision,
        channel=channel,
        comment=comment,
        reviewed=question.kind,
    )
    return task, answer


def _when_pending(task: Task, channel: str) -> str:
    why = "this client cannot ask" if channel == "none" else "nobody has decided"
    return (
        f"human: {why}. Run `tigon review {task.task_id}` in a terminal in the workspace, or answer when asked again. "
        f"assistant: tell the human this, and wait."
    )
