"""Understand: trace a reference, and turn what the assistant says into a profile that facts agree with."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tigon.jobs.runner import JobFailed, JobRunner
from tigon.ledger.ledger import text_hash
from tigon.workflow import naming, records
from tigon.workflow.answers import ProfileAnswer, TierAnswer
from tigon.workflow.contradictions import Evidence
from tigon.workflow.contradictions import problems as find_problems
from tigon.workflow.fill import ROW_LAUNCH, Launch, fill
from tigon.workflow.kernel_profile import KernelProfile, kernel_names, profile_hash, read_profile
from tigon.workflow.name_rules import Own, name_problems
from tigon.workflow.refusal import Refusal
from tigon.workflow.store import TaskStore
from tigon.workflow.tasks import Task
from tigon.workspace.layout import Workspace
from tigon.workspace.plan import plan_files
from tigon.workspace.style import CannotFormat
from tigon.workspace.syntax_edit import CannotEdit
from tigon_tools.schema.errors import JobFailure
from tigon_tools.schema.generate import GenerateRequest, GenerateResult
from tigon_tools.schema.reference import (
    Facts,
    InputSpec,
    Reference,
    ResolveRequest,
    ResolveResult,
    TraceRequest,
    TraceResult,
)
from tigon_tools.schema.wire import WireError, from_wire, to_wire

Progress = Callable[[str, float], None]

WORKFLOWS = ("liger-kernel-dev",)
"""Those that this version has; the contract names two more."""

LONGEST_FACTS = 8000
"""Characters of facts in an answer: with the rest of it under the 10,000 that clients show whole."""

_CUT_FIRST = (
    "gradient_formulas",
    "forward_formulas",
    "recomputed",
    "backward_ops",
    "forward_ops",
    "inputs",
    "outputs",
    "notes",
)
"""What is left out of an answer that is too long, in this order: a person finds it in the profile."""


async def classify(
    workspace: Workspace,
    jobs: JobRunner,
    source: str,
    entry: str | None,
    inputs: Sequence[dict[str, Any]] | None,
    progress: Progress,
) -> TierAnswer:
    """Trace a reference that belongs to no task yet."""
    reference = await resolve(workspace, jobs, source, entry, inputs, progress)
    facts = await trace(jobs, reference, progress)
    generated = "is generated whole"
    if not facts.generates:
        left = "is left to you, in a file that is complete but for it" if facts.tier == 3 else "is not generated"
        generated = f"{left}: {facts.generates_not_because}"
    return TierAnswer(
        state="ready",
        next=f"assistant: emit_profile with operation_name and this reference. The kernel {generated}",
        tier=facts.tier,
        tier_description=facts.tier_description,
        evidence=[evidence.sentence for evidence in facts.evidence],
        closest_kernels=[kernel for kernel in facts.closest_kernels if kernel in workspace.kernels()],
        facts=facts_for_model(facts),
    )


async def resolve(
    workspace: Workspace,
    jobs: JobRunner,
    source: str,
    entry: str | None,
    inputs: Sequence[dict[str, Any]] | None,
    progress: Progress,
) -> Reference:
    """Freeze what the assistant named.

    Raises:
        Refusal: the inputs or the source are not usable; says why.
    """
    specs = None if inputs is None else tuple(_input_spec(entry) for entry in inputs)
    request = ResolveRequest(source, str(workspace.root), entry, specs)
    try:
        result: ResolveResult = await jobs.run("resolve", request, progress=progress)
    except JobFailed as failed:
        raise refused(failed) from None
    return result.reference


async def trace(jobs: JobRunner, reference: Reference, progress: Progress) -> Facts:
    """The facts.

    Raises:
        Refusal: the reference cannot be traced; names the line or op.
    """
    try:
        result: TraceResult = await jobs.run("trace", TraceRequest(reference), progress=progress)
    except JobFailed as failed:
        raise refused(failed) from None
    return result.facts


def refused(failed: JobFailed) -> Refusal:
    """A job's failure as the refusal of a call."""
    failure = failed.failure
    gate = {"bad_reference": "reference", "untraceable": "reference", "unsupported": "scaffold"}.get(
        failure.kind, "job"
    )
    return Refusal(gate, failure.message, failure.next_step or "call again, or tell the human.")


def _input_spec(entry: dict[str, Any]) -> InputSpec:
    fields = {key: value for key, value in entry.items() if value is not None}
    if "value" in fields and "dtype" not in fields:
        fields["dtype"] = type(fields["value"]).__name__
    elif "shape" not in fields and fields.get("dtype", "float32") == "float32":
        fields["dtype"] = "float"
    try:
        return from_wire(InputSpec, fields)
    except WireError as problem:
        raise Refusal("input", f"inputs: {problem}.", "each input is {name, shape, dtype, requires_grad}.") from None


def facts_for_model(facts: Facts) -> dict[str, Any]:
    """The facts, without what only people or the generator need."""
    document: dict[str, Any] = to_wire(facts)
    for name in ("evidence", "tier", "tier_description", "closest_kernels", "torch_version", "is_module"):
        del document[name]
    document["inputs"] = [
        {k: v for k, v in entry.items() if v is not None and k not in ("symbol", "annotation")}
        for entry in document["inputs"]
    ]
    for name in _CUT_FIRST:
        if len(json.dumps(document)) <= LONGEST_FACTS:
            break
        document[name] = {"left_out": f"{len(document[name])} entries, too long for an answer; the profile has them"}
    return document


async def emit(
    workspace: Workspace,
    jobs: JobRunner,
    store: TaskStore,
    workflow: str,
    document: dict[str, Any],
    task_id: str | None,
    progress: Progress,
) -> ProfileAnswer:
    """Open a task or revise its profile."""
    if workflow not in WORKFLOWS:
        raise Refusal("input", f"workflow {workflow!r} is not part of this version.", f"use {', '.join(WORKFLOWS)}.")
    task = store.task(task_id) if task_id else None
    if task is not None and task.state in ("done", "blocked"):
        raise Refusal("task", f"task {task_id} is {task.state}.", task.next)
    stated = read_profile(document)
    if task is not None and task.own_files and stated.operation_name != task.operation_name:
        raise Refusal(
            "input",
            f"task {task_id} has written files for {task.operation_name}, so it cannot become {stated.operation_name}.",
            "keep the name, or leave task_id out to open another task.",
        )
    own = own_of(store, task)
    _check_names(stated, workspace, own, store.underway(task_id), task)
    inputs = stated.reference.inputs
    reference = await resolve(
        workspace,
        jobs,
        stated.reference.source,
        stated.reference.entry,
        None if inputs is None else [entry.model_dump() for entry in inputs],
        progress,
    )
    facts, generated, refusal = await _generate(workspace, jobs, reference, stated, progress)
    launch = ROW_LAUNCH
    if generated is not None:
        launch = Launch(generated.grid_dimensions, generated.grid_description, generated.block_size_source)
    filled = fill(stated, facts, launch, workspace)
    if generated is not None:
        refusal = _cannot_plan(workspace, filled, generated, reference)
    found = find_problems(stated, Evidence(facts, launch, workspace, refusal))
    task = _record(
        store, task or Task(store.new_id(stated.operation_name)), workflow, stated, filled, reference, facts, found
    )
    write_profile(workspace, store, task)
    return ProfileAnswer(
        state=task.state,
        next=task.next,
        task_id=task.task_id,
        profile_hash=task.profile_hash,
        profile_path=records.profile_path(task.task_id),
        problems=list(task.problems),
        filled=[name for name in type(filled).model_fields if name not in task.claimed],
    )


def own_of(store: TaskStore, task: Task | None) -> Own:
    """What in the workspace is there because this task wrote it."""
    if task is None or not task.own_files:
        return Own()
    return Own(frozenset(task.own_files), store.profile(task).functional_name)


def _check_names(
    stated: KernelProfile, workspace: Workspace, own: Own, underway: Mapping[str, str], task: Task | None
) -> None:
    """Before anything is traced or recorded.

    Raises:
        Refusal: a name is not usable, or something else has it.
    """
    found = name_problems(stated, workspace, own, underway)
    if not found:
        return
    other = underway.get(stated.operation_name)
    step = "choose another name" if other is None else f"revise {other} (task_id {other}), or choose another name"
    left = "No task was opened" if task is None else f"Task {task.task_id} is as it was"
    raise Refusal("input", " ".join(found), f"{step}, and call emit_profile again. {left}.")


async def _generate(
    workspace: Workspace, jobs: JobRunner, reference: Reference, stated: KernelProfile, progress: Progress
) -> tuple[Facts, GenerateResult | None, str | None]:
    """The facts, and what would be written: its launch is in the profile. Or why it cannot be, as a sentence.

    Raises:
        Refusal: the reference cannot be traced.
    """
    usual, _ = naming.class_names(stated.operation_name, workspace.exported_ops(), workspace.exported_modules())
    request = GenerateRequest(reference, stated.operation_name, stated.function_class_name or usual)
    try:
        generated: GenerateResult = await jobs.run("generate", request, progress=progress)
    except JobFailed as failed:
        if failed.failure.kind not in ("unsupported", "crashed"):
            raise refused(failed) from None
        facts = await trace(jobs, reference, progress)
        if failed.failure.kind == "crashed" and facts.generates:
            raise refused(failed) from None
        return facts, None, _said(failed.failure, facts)
    return generated.facts, generated, None


def _said(failure: JobFailure, facts: Facts) -> str:
    """Why no kernel can be generated: the facts' own words where they have some, else the job's."""
    if not facts.generates and facts.generates_not_because:
        return facts.generates_not_because
    line = f" (line {failure.line} of the reference)" if failure.line is not None else ""
    return f"{failure.message.removeprefix('no kernel can be generated for this reference: ')}{line}"


def _cannot_plan(
    workspace: Workspace, filled: KernelProfile, generated: GenerateResult, reference: Reference
) -> str | None:
    """Why the files could not be put into this workspace; found out by planning them. Nothing is written."""
    try:
        plan_files(workspace, kernel_names(filled), generated, reference)
    except (CannotEdit, CannotFormat) as problem:
        return str(problem)
    return None


def _record(
    store: TaskStore,
    task: Task,
    workflow: str,
    stated: KernelProfile,
    filled: KernelProfile,
    reference: Reference,
    facts: Facts,
    found: list[str],
) -> Task:
    profile_text = filled.model_dump_json()
    reference_text = json.dumps(to_wire(reference))
    facts_text = json.dumps(to_wire(facts))
    payload = {
        "workflow": workflow,
        "operation_name": filled.operation_name,
        "profile_hash": profile_hash(filled, reference),
        "profile": text_hash(profile_text),
        "reference": text_hash(reference_text),
        "facts": text_hash(facts_text),
        "claimed": list(stated.claims()),
        "problems": found,
    }
    return store.append(task, "profile_emitted", payload, (profile_text, reference_text, facts_text))


def write_profile(workspace: Workspace, store: TaskStore, task: Task) -> str:
    """The readable copy of the profile; returns its text."""
    profile = store.profile(task)
    text = records.render_profile(task, profile, store.facts(task), store.reference(task), workspace.liger_version)
    document = json.dumps(profile.model_dump(mode="json"), indent=2) + "\n"
    records.keep_copy(workspace.root, task.task_id, "profile.json", document)
    records.keep_copy(workspace.root, task.task_id, "profile.md", text)
    return text
