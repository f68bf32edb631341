"""The gates of the verify stage, in order. Each gives a status and a sentence; hard ones block.

- integrity: only planned files have changed since the scaffold, the generated tests are all there, and the
  approval still holds.
- scaffold_tests: whether test, benchmark and exports are still what was scaffolded (soft: a reviewer looks).
- import: the names that others will use can be imported from the workspace.
- style: the workspace's own ruff settings.
- unit_tests: the kernel's test file.
- judge: Tigon's oracle, independent of the workspace's tests, against the frozen reference.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tigon.jobs.runner import JobFailed, JobRunner
from tigon.workflow.answers import GateKind, GateResult, GateStatus
from tigon.workflow.integrity import foreign_changes, missing_files
from tigon.workflow.kept_tests import names_of_tests, weakened
from tigon.workflow.kernel_profile import KernelProfile, kernel_names
from tigon.workflow.refusal import Refusal
from tigon.workspace.layout import FUNCTIONAL, OPS_INIT, TRANSFORMERS_INIT, KernelPaths, Workspace
from tigon.workspace.own_parts import SHARED, own_digest, owner_of_line
from tigon.workspace.plan import planned_paths
from tigon.workspace.render import KernelNames
from tigon.workspace.style import CannotFormat, check_style
from tigon_tools.schema.gates import ImportRequest, ImportResult, MachineResult, UnitTestRequest, UnitTestResult
from tigon_tools.schema.judge import JudgeRequest, JudgeResult
from tigon_tools.schema.reference import Reference

Progress = Callable[[str, float], None]

UNIT_TEST_SECONDS = 900.0
"""For a kernel's whole test file in the interpreter, where one program takes about 5 ms."""

JUDGE_SECONDS = 300.0
"""For every case of the judge; what is left then is reported as skipped."""

LISTED = 5
"""Problems named in a gate's sentence; the report has all."""


PUT_BACK = (
    "Put these back (scaffold_kernel writes a file again that is gone), and add tests beside them as you like. "
    "What they test changes with the profile only, which a human reviews."
)
"""What to do about a test that is no longer what was scaffolded."""


def _silent(text: str, fraction: float) -> None:
    """Until a run says whom to tell."""


@dataclass
class Context:
    """What the gates look at.

    snapshot, originals: of the workspace before the task's first write.
    scaffolded: path to digest of the task's part of what was written. scaffolded_test: the unit test's text then.
    of_other_tasks: files that other tasks wrote, each with its task's id. others: what those tasks call things, by id.
    generated_tests: whether the unit test is a generated one, every test of which runs on every device.
    importable: the import gate has passed.
    machine, tests, judged, problems: filled by the run, for the report.
    """

    workspace: Workspace
    jobs: JobRunner
    profile: KernelProfile
    profile_hash: str
    reference: Reference
    approved: bool
    snapshot: Mapping[str, str]
    originals: Mapping[str, str | None]
    scaffolded: Mapping[str, str]
    of_other_tasks: Mapping[str, str]
    others: Mapping[str, KernelNames]
    scaffolded_test: str | None
    device: str
    generated_tests: bool = False
    importable: bool = False
    progress: Progress = _silent
    machine: MachineResult | None = None
    tests: UnitTestResult | None = None
    judged: JudgeResult | None = None
    problems: dict[str, list[str]] = field(default_factory=dict)

    @property
    def paths(self) -> KernelPaths:
        return KernelPaths.of(self.profile.operation_name)

    @property
    def names(self) -> KernelNames:
        return kernel_names(self.profile)


@dataclass(frozen=True)
class Gate:
    """needs: gates that must not have failed for this one to mean anything."""

    name: str
    kind: GateKind
    run: Callable[[Context], Awaitable[tuple[GateStatus, str]]]
    needs: tuple[str, ...] = ()


NO_VERDICT = ("no_torch", "cancelled")
"""Failures of a job that say nothing about the kernel, so they are no failed attempt either."""


async def run_gate(gate: Gate, context: Context) -> GateResult:
    """Run one gate; a job that fails is the gate's failure, with the job's own words.

    Raises:
        Refusal: the gate could not be run at all.
    """
    try:
        status, detail = await gate.run(context)
    except JobFailed as failed:
        if failed.failure.kind in NO_VERDICT:
            step = failed.failure.next_step or "call run_verify again."
            raise Refusal("job", failed.failure.message, step) from None
        status, detail = "failed", str(failed)
    if status == "failed" and "import" in gate.needs and not context.importable:
        await _import(context)  # chosen without the import gate: is it another task's file that fails?
    return GateResult(name=gate.name, kind=gate.kind, status=status, detail=detail)


async def _integrity(context: Context) -> tuple[GateStatus, str]:
    if not context.approved:
        return "failed", "the profile has changed since it was approved; it needs a new review."
    name = context.profile.operation_name
    foreign = foreign_changes(
        context.workspace,
        context.names,
        context.snapshot,
        context.originals,
        context.of_other_tasks,
        [*context.others.values()],
    )
    if foreign:
        context.problems["integrity"] = foreign
        return (
            "failed",
            f"changed outside the plan: {_listed(foreign)}. Put these back; a task changes its own files only.",
        )
    missing = missing_files(context.workspace, name)
    if missing:
        return "failed", f"planned files are gone: {_listed(missing)}. Run scaffold_kernel again."
    if context.scaffolded_test is not None:
        lost = weakened(context.scaffolded_test, context.workspace.read(context.paths.test))
        if lost:
            return "failed", f"{context.paths.test}: {_listed(lost)}. {PUT_BACK}"
    return "passed", "only planned files have changed, and the approval holds."


async def _scaffold_tests(context: Context) -> tuple[GateStatus, str]:
    paths = (context.paths.test, context.paths.benchmark, OPS_INIT, TRANSFORMERS_INIT, FUNCTIONAL)
    edited = [path for path in paths if _is_edited(context, path)]
    if edited:
        return "flagged", f"edited since the scaffold: {_listed(edited)}. A reviewer should read what changed."
    return "passed", "test, benchmark and exports are as scaffolded, or as they were before."


def _is_edited(context: Context, path: str) -> bool:
    """Against what was scaffolded; a file that was there and kept, against what it was."""
    original = context.originals.get(path)
    own = own_digest(path, original, context.names) if original is not None else None
    expected = context.scaffolded.get(path) or own
    if expected is None:
        return False
    return (
        not context.workspace.exists(path) or own_digest(path, context.workspace.read(path), context.names) != expected
    )


async def _import(context: Context) -> tuple[GateStatus, str]:
    profile = context.profile
    names = (
        f"liger_kernel.ops.{profile.operation_name}:{profile.function_class_name}",
        f"liger_kernel.ops:{profile.function_class_name}",
        f"liger_kernel.transformers:{profile.module_class_name}",
        f"liger_kernel.transformers.functional:{profile.functional_name}",
    )
    result: ImportResult = await context.jobs.run(
        "import", ImportRequest(str(context.workspace.root), names, context.device), device=context.device
    )
    if result.passed:
        context.importable = True
        return "passed", f"{len(names)} names can be imported."
    _refuse_for_others(context, result.problems)
    context.problems["import"] = list(result.problems)
    return "failed", " ".join(result.problems[:LISTED])


def _refuse_for_others(context: Context, problems: Sequence[str]) -> None:
    """What another task left broken says nothing about this task's kernel, and costs it no attempt.

    Raises:
        Refusal: naming the task and the file.
    """
    blamed = [_blamed(context, problem) for problem in problems]
    if not blamed or None in blamed:
        return
    task_id, path = next(found for found in blamed if found is not None)
    raise Refusal(
        "import",
        f"{path}, which is task {task_id}'s, fails, and with it every import of the package: {problems[0]}",
        f"mend that in task {task_id}, or tell the human; then call run_verify again. This run counts for nothing here.",
    )


def _blamed(context: Context, problem: str) -> tuple[str, str] | None:
    """The other task, and its file, that a problem comes from; None where it comes from none.

    In a file that all tasks write in, the line says whose entry it is.
    """
    place = re.search(r"\((\S+?):(\d+)\)\.$", problem)
    if place is None:
        return None
    owner = _other_owner(context, place[1], int(place[2]))
    return None if owner is None else (owner, place[1])


def _other_owner(context: Context, path: str, line: int) -> str | None:
    """The other task that a line of a file belongs to; None where it is this one's or nobody's."""
    if path in SHARED:
        return owner_of_line(path, context.workspace.read(path), line, context.others)
    if path in planned_paths(context.names.operation_name):
        return None
    return context.of_other_tasks.get(path)


async def _style(context: Context) -> tuple[GateStatus, str]:
    paths = planned_paths(context.profile.operation_name)
    try:
        problems = check_style(paths, context.workspace.root, context.originals)
    except CannotFormat as problem:
        return "failed", str(problem)
    problems = [problem for problem in problems if not _is_of_another(context, problem)]
    if not problems:
        return "passed", "ruff finds nothing new, by the workspace's settings."
    context.problems["style"] = problems
    return "failed", f"{len(problems)} style problems: {_listed(problems)}."


def _is_of_another(context: Context, problem: str) -> bool:
    """Whether ruff dislikes a line that another task wrote in a file of all kernels."""
    place = re.match(r"(\S+?):(\d+): ", problem)
    return place is not None and _other_owner(context, place[1], int(place[2])) is not None


async def _unit_tests(context: Context) -> tuple[GateStatus, str]:
    request = UnitTestRequest(
        str(context.workspace.root), (context.paths.test,), context.device, None, UNIT_TEST_SECONDS
    )
    result: UnitTestResult = await context.jobs.run(
        "unit_tests", request, device=context.device, progress=context.progress
    )
    context.tests = result
    if result.passed:
        idle = _idle_tests(context, result) if context.generated_tests else []
        if idle:
            return "failed", f"{result.detail} No case of {_listed(idle)} ran. {PUT_BACK}"
        return "passed", result.detail
    bad = [o for o in result.outcomes if o.outcome in ("failed", "error", "cut off")]
    shown = "; ".join(f"{o.test.split('::')[-1]}: {o.message}" for o in bad[:LISTED])
    return "failed", f"{result.detail}{' ' + shown if shown else ''}"


def _idle_tests(context: Context, result: UnitTestResult) -> list[str]:
    """Generated tests of which no case has passed: something skips them. Added tests are their author's."""
    assert context.scaffolded_test is not None
    passed = {o.test.split("::")[-1].split("[")[0] for o in result.outcomes if o.outcome == "passed"}
    return [name for name in names_of_tests(context.scaffolded_test) if name not in passed]


async def _judge(context: Context) -> tuple[GateStatus, str]:
    candidate = f"{context.workspace.root / context.paths.ops}:{context.profile.function_class_name}"
    request = JudgeRequest(
        candidate,
        context.reference,
        str(context.workspace.root),
        context.device,
        kernels=True,
        max_seconds=JUDGE_SECONDS,
    )
    result: JudgeResult = await context.jobs.run("judge", request, device=context.device, progress=context.progress)
    context.judged = result
    failed = [f for f in result.findings if f.status == "failed"]
    doubtful = [f for f in result.findings if f.status in ("flagged", "skipped")]
    if result.passed:
        agree = f"{result.cases} cases, {result.seconds:.0f} s: forward and gradients agree with float64."
        if doubtful:
            return "flagged", f"{agree} To look at: {'; '.join(f'{f.check}: {f.detail}' for f in doubtful[:LISTED])}"
        return "passed", agree
    shown = "; ".join(f"{f.check}: {f.detail}{f' ({f.case})' if f.case else ''}" for f in failed[:LISTED])
    return "failed", f"{len(failed)} findings in {result.cases} cases: {shown}"


GATES = (
    Gate("integrity", "hard", _integrity),
    Gate("scaffold_tests", "soft", _scaffold_tests),
    Gate("import", "hard", _import, needs=("integrity",)),
    Gate("style", "hard", _style, needs=("integrity",)),
    Gate("unit_tests", "hard", _unit_tests, needs=("integrity", "import")),
    Gate("judge", "hard", _judge, needs=("integrity", "import")),
)
"""In the order they run: cheap first, and what the others rest on before them."""


def _listed(items: list[str]) -> str:
    more = len(items) - LISTED
    return ", ".join(items[:LISTED]) + (f" and {more} more" if more > 0 else "")
