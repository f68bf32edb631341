"""What a human reads: profile and report in Markdown, rendered and written under `.tigon/tasks/`."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import tigon
from tigon.workflow.gates import Context
from tigon.workflow.kernel_profile import KernelProfile
from tigon.workflow.tasks import MAX_ATTEMPTS, Task
from tigon.workflow.verify import VerifyRun
from tigon.workspace.layout import Workspace
from tigon.workspace.own_parts import own_part
from tigon.workspace.plan import planned_paths
from tigon.workspace.write import replace_file
from tigon_tools.schema.reference import Facts, InputFact, Reference

LONGEST_DIFF = 400
"""Lines of the diff that a review shows; the whole of it is what `git diff` says."""

UNCHECKED = (
    "forward_computation",
    "backward_recompute",
    "grid_description",
    "block_size_source",
    "benchmark_variable",
    "benchmark_x_values_suggestion",
    "benchmark_providers",
    "benchmark_fixed_config",
)
"""Entries that are prose, or that what is generated does not follow: a claim there is the assistant's word only."""


def task_folder(root: Path, task_id: str) -> Path:
    return root / ".tigon" / "tasks" / task_id


def profile_path(task_id: str) -> str:
    """Relative to the workspace."""
    return f".tigon/tasks/{task_id}/profile.md"


def report_path(task_id: str) -> str:
    """Relative to the workspace."""
    return f".tigon/tasks/{task_id}/report.md"


def keep_copy(root: Path, task_id: str, name: str, text: str) -> None:
    """Write what a human reads, whole or not at all. The ledger decides; a copy that is lost is written again."""
    path = task_folder(root, task_id) / name
    if not path.is_file() or path.read_bytes() != text.encode():
        replace_file(path, text)


def render_profile(task: Task, profile: KernelProfile, facts: Facts, reference: Reference, liger_version: str) -> str:
    """The profile as a human wants to read it."""
    return _render(
        "profile.md.j2",
        task=task,
        profile=profile,
        facts=replace(facts, notes=tuple(_notes(facts))),
        reference=reference,
        liger_version=liger_version,
        planned=planned_paths(profile.operation_name),
        entries=[
            (name, _shown(getattr(profile, name)), _by(name, task))
            for name in type(profile).model_fields
            if name != "reference"
        ],
        tensors=[a for a in facts.inputs if a.shape is not None],
        scalars=[replace(a, default=_traced_with(a, reference)) for a in facts.inputs if a.shape is None],
    )


def _traced_with(argument: InputFact, reference: Reference) -> str:
    """A scalar's value in the trace, and whether callers have to give one."""
    given = {spec.name: spec.value for spec in reference.inputs or ()}.get(argument.name)
    if argument.required and argument.kind == "scalar":
        return "required" if given is None else f"{given!r} (required)"
    if given is None or given == argument.default:
        return repr(argument.default)
    return f"{given!r} (default {argument.default!r})" if argument.kind == "scalar" else repr(given)


def _notes(facts: Facts) -> list[str]:
    """What tracing noted, and what became of each argument that the kernel does not have."""
    notes = list(facts.notes)
    for argument in facts.inputs:
        if argument.kind != "static":
            continue
        said = next((note for note in notes if note.startswith(f"{argument.name} is fixed at ")), None)
        because = _BRANCHES
        if said is not None:
            notes.remove(said)
            because = said.partition(": ")[2].rstrip(".")
        notes.append(
            f"`{argument.name}` is fixed at {argument.default!r}: not an argument of the kernel, because {because}."
        )
    return notes


_BRANCHES = "only tensors and numbers can be, and a kernel is generated for one value of anything else"
"""Why a bool, a string or None is fixed; of a number tracing says why."""


def _by(name: str, task: Task) -> str:
    if name not in task.claimed:
        return "computed"
    return "claimed, not checked" if name in UNCHECKED else "claimed"


def render_report(task: Task, run: VerifyRun, passed: bool, unchanged: bool) -> str:
    """The report of one run of the gates.

    unchanged: the files at the end of the run are those it began with.
    """
    context = run.context
    tests = context.tests.outcomes if context.tests else ()
    return _render(
        "report.md.j2",
        task=task,
        run=run,
        context=context,
        passed=passed,
        headline=_headline(task, run, passed, unchanged),
        look_at=_look_at(run, unchanged),
        outcomes=dict(Counter(o.outcome for o in tests)),
        bad=[o for o in tests if o.outcome not in ("passed", "skipped")],
        skipped=dict(Counter(o.message for o in tests if o.outcome == "skipped")),
        files=_changed_lines(context),
        reviews=[review for review in task.reviews if review["decision"] != "pending"],
        liger_version=context.workspace.liger_version,
        tigon_version=tigon.__version__,
    )


def _headline(task: Task, run: VerifyRun, passed: bool, unchanged: bool) -> str:
    """The result in a sentence or two."""
    failed = [r.name for r in run.results if r.status == "failed" and r.kind == "hard"]
    if not passed:
        left = max(0, MAX_ATTEMPTS - run.attempt)
        rest = (
            f"{left} of {MAX_ATTEMPTS} attempts left" if left else "no attempt is left; a human has to reset the task"
        )
        return f"Attempt {run.attempt} failed at {', '.join(failed)}; {rest}."
    if not run.whole:
        return (
            f"The chosen gates passed ({', '.join(r.name for r in run.results)}); verification is not finished by them."
        )
    if not unchanged:
        return "All gates passed, but files changed under the run, so it does not count."
    flagged = [r.name for r in run.results if r.status in ("flagged", "failed")]
    return f"All hard gates passed, attempt {run.attempt}." + (f" Flagged: {', '.join(flagged)}." if flagged else "")


def _look_at(run: VerifyRun, unchanged: bool) -> list[str]:
    """What no gate can decide, or what one left open."""
    context = run.context
    paths = context.paths
    notes = [f"{r.name}: {r.detail}" for r in run.results if r.status == "flagged"]
    if not unchanged:
        notes.append("Files changed while the gates ran; run them again.")
    if context.originals.get(paths.test) is not None:
        notes.append(f"`{paths.test}` was there before this task, and was kept.")
    skipped = sum(o.outcome == "skipped" for o in context.tests.outcomes) if context.tests else 0
    if skipped:
        notes.append(f"{skipped} unit tests were skipped; the judge alone speaks for what they test.")
    others = sorted(context.of_other_tasks)
    if others:
        notes.append(
            f"Other tasks wrote in this workspace too ({len(others)} files); the diff of shared files has both."
        )
    notes.append(f"`{paths.ops}`: what the kernels load, compute and store, and whether the names are Liger's.")
    if context.device == "cpu":
        notes.append("Speed and GPU-only behaviour: this run was on a CPU, in Triton's interpreter.")
    return notes


def _changed_lines(context: Context) -> list[tuple[str, str]]:
    """Each planned file with how many of the task's lines were added and removed."""
    files = []
    for path in planned_paths(context.profile.operation_name):
        before = context.originals.get(path)
        after = context.workspace.read(path) if context.workspace.exists(path) else None
        if after is None:
            files.append((path, "missing"))
        elif before is None:
            files.append((path, f"new, {len(after.splitlines())} lines"))
        else:
            was, now = (own_part(path, text, context.names).splitlines() for text in (before, after))
            lines = list(difflib.unified_diff(was, now, n=0, lineterm=""))[2:]
            added = sum(line.startswith("+") for line in lines)
            removed = sum(line.startswith("-") for line in lines)
            files.append((path, f"+{added} -{removed}" if added or removed else "unchanged"))
    return files


def render_diff(workspace: Workspace, operation_name: str, originals: Mapping[str, str | None]) -> str:
    """What the task changes, as a unified diff against what was there before the scaffold."""
    lines: list[str] = []
    for path in planned_paths(operation_name):
        before = originals.get(path)
        after = workspace.read(path) if workspace.exists(path) else None
        if before == after:
            continue
        lines += difflib.unified_diff(
            (before or "").splitlines(),
            (after or "").splitlines(),
            f"a/{path}" if before is not None else "/dev/null",
            f"b/{path}" if after is not None else "/dev/null",
            lineterm="",
        )
    if len(lines) > LONGEST_DIFF:
        lines = [*lines[:LONGEST_DIFF], f"... {len(lines) - LONGEST_DIFF} more lines; see the files."]
    return "\n".join(lines)


def fenced(text: str, language: str = "") -> str:
    """A Markdown block that nothing in the text can close."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{visible(text.strip(chr(10)))}\n{fence}"


def visible(text: str) -> str:
    """Characters that a terminal obeys, or that hide or reorder text, as escapes: a human sees what is there."""
    return "".join(c if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf") else ascii(c)[1:-1] for c in text)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_shown(item) for item in value) or "none"
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_shown(item)}" for key, item in value.items())
    if hasattr(value, "model_dump"):
        fields = {k: v for k, v in value.model_dump().items() if v is not None}
        name = fields.pop("name")
        if fields.pop("required", False):
            fields["default"] = "required"
        return f"{name} ({', '.join(str(v) for v in fields.values())})" if fields else str(name)
    return str(value)


def _line(text: Any) -> str:
    return " ".join(visible(str(text)).split())


def _render(template: str, **context: Any) -> str:
    text: str = _environment().get_template(template).render(**context)
    return text


@cache
def _environment() -> Any:
    import jinja2  # not at the server's start: it costs 50 ms

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("tigon", "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["mib"] = lambda count: f"{count / 2**20:,.2f} MiB" if count >= 2**20 else f"{count:,} bytes"
    environment.filters["cell"] = lambda text: _line(text).replace("|", "\\|")
    environment.filters["line"] = _line
    environment.filters["sentence"] = lambda text: _line(text)[:1].upper() + _line(text)[1:]
    environment.filters["fenced"] = fenced
    environment.filters["times"] = lambda shape: " × ".join(map(str, shape)) or "one element"
    return environment
