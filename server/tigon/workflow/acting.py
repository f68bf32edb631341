"""Act: write the files of an approved profile. Refused calls change nothing on disk."""

from __future__ import annotations

import json
from collections.abc import Callable

from tigon.jobs.runner import JobFailed, JobRunner
from tigon.ledger.ledger import text_hash
from tigon.workflow.answers import ScaffoldAnswer, ScaffoldedFile
from tigon.workflow.kernel_profile import kernel_names
from tigon.workflow.refusal import Refusal
from tigon.workflow.store import TaskStore
from tigon.workflow.tasks import Task
from tigon.workflow.understanding import refused
from tigon.workspace.layout import KernelPaths, Workspace
from tigon.workspace.own_parts import own_digest
from tigon.workspace.plan import plan_files
from tigon.workspace.render import KernelNames
from tigon.workspace.snapshot import take_snapshot
from tigon.workspace.style import CannotFormat
from tigon.workspace.syntax_edit import CannotEdit
from tigon.workspace.write import Action, CannotWrite, PlannedFile, apply_plan
from tigon_tools.schema.generate import GenerateRequest, GenerateResult

Progress = Callable[[str, float], None]

TRY_AGAIN = "correct that, then call scaffold_kernel again."


def check_may_write(task: Task) -> None:
    """The gate before anything is generated.

    Raises:
        Refusal: the profile is not approved as it is now, or the task is over.
    """
    if task.state in ("done", "blocked"):
        raise Refusal("task", f"task {task.task_id} is {task.state}.", task.next)
    if task.state == "rejected":
        raise Refusal("profile_review", "the human sent the profile back.", task.next)
    if not task.approved:
        raise Refusal("profile_review", "nobody has approved this profile; nothing is generated before.", task.next)


async def scaffold(
    workspace: Workspace, jobs: JobRunner, store: TaskStore, task_id: str, progress: Progress
) -> ScaffoldAnswer:
    """Generate, plan, write, and record what was written."""
    task = store.task(task_id)
    check_may_write(task)
    other = store.writer_of(task.operation_name, task_id)
    if other is not None:
        step = f"go on with {other}, or revise {task_id} with emit_profile under another operation_name."
        raise Refusal("scaffold", f"task {other} has written {task.operation_name}.", step)
    profile = store.profile(task)
    reference = store.reference(task)
    assert profile.function_class_name is not None
    request = GenerateRequest(reference, profile.operation_name, profile.function_class_name)
    try:
        generated: GenerateResult = await jobs.run("generate", request, progress=progress)
    except JobFailed as failed:
        raise refused(failed) from None
    names = kernel_names(profile)
    try:
        plan = plan_files(workspace, names, generated, reference)
    except (CannotEdit, CannotFormat) as problem:
        raise Refusal("scaffold", str(problem), TRY_AGAIN) from None
    begun = _begin(workspace, store, task, plan, names)
    try:
        written = apply_plan(workspace.root, plan, begun.own_files)
    except CannotWrite as problem:
        store.append(begun, "scaffold_undone", {"profile_hash": task.profile_hash})
        raise Refusal("scaffold", str(problem), TRY_AGAIN) from None
    task = _finish(store, task, begun, written, names)
    return ScaffoldAnswer(
        state=task.state,
        next=_next(task, written),
        task_id=task_id,
        files=[ScaffoldedFile(path=f.path, action=action, complete=f.complete) for f, action in written],
    )


def _begin(workspace: Workspace, store: TaskStore, task: Task, plan: list[PlannedFile], names: KernelNames) -> Task:
    """Say what is about to be written, with the workspace before it, so that a kill leaves no file that nobody wrote.

    The first scaffold's snapshot stays: the integrity gate and the diff compare with it.
    """
    digests = {f.path: own_digest(f.path, f.text, names) for f in plan}
    there = {path: own_digest(path, workspace.read(path), names) for path in digests if workspace.exists(path)}
    if there == digests and task.is_scaffolded:
        return task  # nothing to write
    texts: list[str] = []
    if not task.snapshot_text:
        originals = {f.path: workspace.read(f.path) if workspace.exists(f.path) else None for f in plan}
        texts = [json.dumps(take_snapshot(workspace.root), sort_keys=True), json.dumps(originals, sort_keys=True)]
    payload = {
        "profile_hash": task.profile_hash,
        "files": digests,
        "snapshot": text_hash(texts[0]) if texts else "",
        "originals": text_hash(texts[1]) if texts else "",
    }
    return store.append(task, "scaffold_begun", payload, texts)


def _finish(
    store: TaskStore, before: Task, begun: Task, written: list[tuple[PlannedFile, Action]], names: KernelNames
) -> Task:
    """Record what was written; nothing where nothing was."""
    digests = {f.path: own_digest(f.path, f.text, names) for f, action in written if action != "kept"}
    # A kept file goes on being compared with what this task wrote before the human edited it.
    kept = {f.path: before.scaffolded[f.path] for f, _ in written if f.path in before.scaffolded}
    if {**kept, **digests} == before.scaffolded and before.is_scaffolded and not _wrote(written):
        return (
            begun if begun is before else store.append(begun, "scaffold_undone", {"profile_hash": before.profile_hash})
        )
    payload = {
        "profile_hash": before.profile_hash,
        "files": {**kept, **digests},
        "actions": {f.path: action for f, action in written},
    }
    tests = [
        f.text for f, action in written if f.path == KernelPaths.of(names.operation_name).test and action != "kept"
    ]
    payload["test"] = text_hash(tests[0]) if tests else before.test_text
    return store.append(begun, "scaffolded", payload, tests)


def _wrote(written: list[tuple[PlannedFile, Action]]) -> bool:
    return any(action in ("created", "edited") for _, action in written)


def _next(task: Task, written: list[tuple[PlannedFile, Action]]) -> str:
    left = [f.path for f, _ in written if not f.complete and task.state == "verifying"]
    step = task.next
    if left:
        step = f"assistant: write the kernels that {', '.join(left)} leaves to you, then call run_verify for {task.task_id}."
    kept = [f.path for f, action in written if action == "kept"]
    note = f" Kept as they were, since somebody else wrote or edited them: {', '.join(kept)}." if kept else ""
    return f"{step}{note}"
