"""`tigon doctor`: what this machine can do, what is missing, and how to get it.

It must answer on the machine where nothing works, so each look is on its own and none of them may raise.
"""

from __future__ import annotations

import json
import platform
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import anyio
from rich.console import Console
from rich.table import Table

from tigon import __version__
from tigon.cli.clients import client_checks
from tigon.jobs.runner import JobFailed, JobRunner
from tigon.workspace.layout import find_workspace
from tigon_tools.schema.gates import MachineRequest, MachineResult

Status = Literal["ok", "missing", "optional", "warning"]


@dataclass(frozen=True)
class Check:
    """status: "missing" stops Tigon from working, "optional" costs a feature, "warning" is to be known."""

    name: str
    status: Status
    detail: str
    how: str = ""


def run_doctor(folder: Path, as_json: bool) -> int:
    """Print the checks; 1 where something that Tigon cannot do without is missing."""
    machine, trouble = _ask_machine(folder)
    checks = [
        Check("tigon", "ok", f"{__version__}, Python {platform.python_version()} at {sys.executable}"),
        *_job_checks(machine, trouble),
        _ncu_check(machine),
        _workspace_check(folder),
        *(Check(*parts) for parts in client_checks(folder)),
    ]
    failed = any(check.status == "missing" for check in checks)
    if as_json:
        facts = None if machine is None else asdict(machine)
        print(json.dumps({"ok": not failed, "machine": facts, "checks": [asdict(c) for c in checks]}, indent=2))
    else:
        _print(checks)
    return 1 if failed else 0


def _ask_machine(folder: Path) -> tuple[MachineResult | None, str]:
    """What the interpreter that runs jobs says of itself, or why it says nothing."""

    async def ask() -> MachineResult:
        runner, root = JobRunner(), find_workspace(folder)
        try:
            result = await runner.run("machine", MachineRequest(None if root is None else str(root)))
            assert isinstance(result, MachineResult)
            return result
        finally:
            await runner.close()

    try:
        return anyio.run(ask), ""
    except JobFailed as problem:
        return None, problem.failure.message
    except Exception as problem:  # a broken interpreter is what doctor is there to report
        return None, f"{type(problem).__name__}: {problem}"


def _job_checks(machine: MachineResult | None, trouble: str) -> list[Check]:
    if machine is None:
        how = "set TIGON_PYTHON to the Python that has your torch and Triton, or unset it"
        return [Check("job interpreter", "missing", trouble, how)]
    install = f"{machine.executable} -m pip install"
    packages: tuple[tuple[str, str | None, Status], ...] = (
        ("torch", machine.torch, "missing"),
        ("triton", machine.triton, "missing"),
        ("numpy", machine.numpy, "missing"),
        ("transformers", machine.transformers, "optional"),
        ("liger-kernel", machine.liger_kernel, "optional"),
    )
    checks = [Check("job interpreter", "ok", f"Python {machine.python} at {machine.executable}")]
    for name, version, without in packages:
        if version is None:
            checks.append(Check(name, without, "not installed", f"{install} {name}"))
        else:
            checks.append(Check(name, "ok", version))
    checks.append(_gpu_check(machine))
    checks.append(Check("Triton interpreter", "ok" if machine.triton else "missing", machine.interpreter))
    checks += [Check("job interpreter", "warning", problem) for problem in machine.problems]
    return checks


def _gpu_check(machine: MachineResult) -> Check:
    if machine.cuda:
        return Check("GPU", "ok", machine.gpu or "CUDA")
    how = "with a GPU, install a CUDA build of torch; without one, kernels are verified in the interpreter"
    return Check("GPU", "optional", "none that torch can use", how)


def _ncu_check(machine: MachineResult | None) -> Check:
    path = shutil.which("ncu")
    if path is not None:
        return Check("ncu", "ok", path)
    if machine is not None and not machine.cuda:
        return Check("ncu", "optional", "not found; of no use without a GPU")
    return Check("ncu", "optional", "not found", "install NVIDIA Nsight Compute and put ncu on the PATH")


def _workspace_check(folder: Path) -> Check:
    root = find_workspace(folder)
    if root is not None:
        return Check("workspace", "ok", str(root))
    return Check("workspace", "optional", f"{folder} is not a Liger checkout", "go to one, or `tigon init PATH`")


def _print(checks: list[Check]) -> None:
    signs = {
        "ok": "[green]ok[/]",
        "missing": "[red]missing[/]",
        "optional": "[yellow]optional[/]",
        "warning": "[yellow]note[/]",
    }
    table = Table("", "", "", box=None, show_header=False, pad_edge=False)
    for check in checks:
        detail = check.detail if not check.how else f"{check.detail}\n→ {check.how}"
        table.add_row(signs[check.status], check.name, detail)
    Console(highlight=False).print(table)
