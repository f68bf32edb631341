"""`tigon demo`: what a newcomer watches. A fresh workspace, two kernels from reference to finished task.

The assistant is scripted, everything else is real: the server process, the protocol, the gates, the dialogs.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path

import anyio
import anyio.to_thread
from rich.console import Console
from rich.rule import Rule

from tigon.cli.demo_assistant import DemoFailed, Kernel, connect
from tigon.jobs.runner import JobFailed, JobRunner
from tigon.workflow.refusal import Refusal
from tigon.workspace.init import CannotInit, create_workspace
from tigon.workspace.remove import remove_kernel
from tigon_tools.schema.gates import UnitTestRequest, UnitTestResult

SWISH_BETA = Kernel(
    operation_name="swish_beta",
    say="x * sigmoid(alpha * x): an activation that Liger does not have",
    source='''\
import torch


def swish_beta(x: torch.Tensor, alpha: float = 1.0) -> torch.Tensor:
    """Swish with a slope (arXiv:1710.05941): x * sigmoid(alpha * x)."""
    return x * torch.sigmoid(alpha * x)
''',
    inputs=[
        {"name": "x", "shape": [64, 1000], "dtype": "float32"},
        {"name": "alpha", "dtype": "float", "value": 1.5},
    ],
)
RELU_SQUARED = Kernel(
    operation_name="relu_squared",
    say="relu(x)²: Liger has it, so its own files are removed first, and its own test is the judge",
    source='''\
import torch


def relu_squared(x: torch.Tensor) -> torch.Tensor:
    """Squared ReLU (Primer, arXiv:2109.08668)."""
    return torch.relu(x) ** 2
''',
    inputs=[{"name": "x", "shape": [64, 1000], "dtype": "float32"}],
)
LIGERS_TEST = "test/transformers/test_relu_squared.py"


def run_demo(workspace: Path | None, keep: bool) -> int:
    """Exit status 0 only if every gate passed."""
    console = Console(highlight=False)
    scratch = Path(tempfile.mkdtemp(prefix="tigon-demo-")) if workspace is None else None
    root = (workspace or Path(str(scratch), "liger")).expanduser().resolve()
    reports: list[Path] = []
    try:
        anyio.run(_demo, root, console, reports)
        passed = True
    except (DemoFailed, CannotInit, JobFailed, Refusal) as failure:
        console.print("[red]The demo stopped.[/] ", end="")
        console.print(str(failure), markup=False, soft_wrap=True)
        passed = False
    if scratch is not None and not keep and passed:
        reports = [_move(report, scratch) for report in reports]
        shutil.rmtree(root, ignore_errors=True)
    else:
        console.print(f"The workspace: {root}", markup=False, soft_wrap=True)
    if passed:
        console.print("[green]Every gate passed.[/] The reports:")
    for report in reports:
        console.print(str(report), markup=False, soft_wrap=True)
    return 0 if passed else 1


async def _demo(root: Path, console: Console, reports: list[Path]) -> None:
    console.print(
        "A scripted assistant works with `tigon serve` over MCP, and its reviews are answered as a human would. "
        "The server, the gates and the kernels are real."
    )
    console.print(Rule("A Liger workspace"))
    await _make_workspace(root, console)
    async with connect(root, console) as assistant:
        console.print(Rule(f"1. {SWISH_BETA.operation_name}"))
        reports.append(await assistant.write_kernel(SWISH_BETA))
        console.print(Rule(f"2. {RELU_SQUARED.operation_name}"))
        _remove_ligers_own(root, console)
        reports.append(await assistant.write_kernel(RELU_SQUARED))
        await _run_ligers_test(root, console)


async def _make_workspace(root: Path, console: Console) -> None:
    with console.status("making a workspace") as status:
        made = await anyio.to_thread.run_sync(create_workspace, root, None, status.update)
    console.print(f"liger-kernel {made.liger_version} in {root}")


def _remove_ligers_own(root: Path, console: Console) -> None:
    console.print("Liger's own files and entries are removed:")
    for path in remove_kernel(root, RELU_SQUARED.operation_name):
        console.print(f"  {path}")


async def _run_ligers_test(root: Path, console: Console) -> None:
    """Liger's own test, which nobody here wrote, on what was scaffolded."""
    console.print(f"\n[bold]Liger's own test[/] ({LIGERS_TEST}) on what was scaffolded")
    runner = JobRunner()
    try:
        request = UnitTestRequest(str(root), (LIGERS_TEST,), "cpu")
        result = await runner.run("unit_tests", request)
    finally:
        await runner.close()
    assert isinstance(result, UnitTestResult)
    outcomes = Counter(outcome.outcome for outcome in result.outcomes)
    console.print(f"  {', '.join(f'{count} {outcome}' for outcome, count in sorted(outcomes.items()))}")
    if not result.passed:
        failed = next((o for o in result.outcomes if o.outcome not in ("passed", "skipped")), None)
        raise DemoFailed(f"Liger's own test: {failed.test + ': ' + failed.message if failed else result.detail}")


def _move(report: Path, folder: Path) -> Path:
    """Out of a workspace that is about to go: .tigon/tasks/TASK/report.md becomes TASK-report.md."""
    return Path(shutil.move(report, folder / f"{report.parent.name}-{report.name}"))
