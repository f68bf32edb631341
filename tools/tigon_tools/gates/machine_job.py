"""Job `machine`: what the interpreter that runs jobs has."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import subprocess
import sys

from tigon_tools import gpus
from tigon_tools.interpreter import activate, supported_versions
from tigon_tools.jobs import Progress
from tigon_tools.schema.gates import MachineRequest, MachineResult

_PACKAGES = ("torch", "triton", "numpy", "liger_kernel", "transformers", "pytest")

_NEEDED = {
    "triton": "kernels can be neither interpreted nor compiled; it is for Linux",
    "numpy": "Triton's interpreter needs it",
    "pytest": "the unit-test gate needs it",
    "transformers": "most of Liger's own test files import it",
}
"""Package and what is not possible without it."""


def run(request: MachineRequest, progress: Progress | None = None) -> MachineResult:
    """Versions, the GPU, NVIDIA's tools, and what is missing with the command that gets it."""
    versions = {name: _version(name) for name in _PACKAGES}
    problems = [
        f"{name} is missing: {why}. {sys.executable} -m pip install {name}"
        for name, why in _NEEDED.items()
        if versions[name] is None
    ]
    gpu, gpu_problem = _gpu()
    interpreter, interpreter_problem = _interpreter(versions["triton"])
    problems += [problem for problem in (gpu_problem, interpreter_problem) if problem]
    return MachineResult(
        python=platform.python_version(),
        executable=sys.executable,
        torch=versions["torch"],
        triton=versions["triton"],
        numpy=versions["numpy"],
        liger_kernel=versions["liger_kernel"],
        transformers=versions["transformers"],
        cuda=gpu is not None,
        gpu=gpu,
        interpreter=interpreter,
        problems=tuple(problems),
        ncu=shutil.which("ncu"),
        compute_sanitizer=shutil.which("compute-sanitizer"),
    )


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _gpu() -> tuple[str | None, str | None]:
    """The first GPU's name, and why there is none although there seems to be one."""
    if _version("torch") is None or not gpus.has_driver():
        return None, None
    try:
        name, built_for = gpus.ask_torch()
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as problem:
        return None, f"torch cannot use the GPU: {' '.join(str(problem).split())[:300]}"
    if name is not None:
        return name, None
    if built_for is None:
        return None, (
            f"torch {_version('torch')} is built without CUDA, and this machine has a GPU's driver. "
            "Install a CUDA build; pytorch.org/get-started has the command."
        )
    return None, f"torch {_version('torch')} finds no GPU; `nvidia-smi` says what the driver sees."


def _interpreter(triton: str | None) -> tuple[str, str | None]:
    """The interpreter's state in words, and what is wrong with it."""
    if triton is None:
        return "none: no Triton", None
    covered = f"{supported_versions[0]} to {supported_versions[-1]}"
    try:
        activate()
    except Exception as problem:
        return f"Triton {triton}, not repaired", f"kernels cannot run on the CPU: {problem}"
    if ".".join(triton.split(".")[:2]) in supported_versions:
        return f"Triton {triton}, repaired", None
    return f"Triton {triton}, repaired; the repairs were tested with {covered}", None
