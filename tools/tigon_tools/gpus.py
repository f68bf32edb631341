"""Hiding the GPUs from a process that works on the CPU, and finding out about them all the same.

Where Triton is interpreted, GPUs are hidden before torch is imported: Liger takes the GPU wherever torch
has one, and torch's autograd starts threads and opens the driver for it, even to trace a function on the
CPU. Neither would survive a fork.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

_HIDDEN = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "-1"}
_KEPT = "TIGON_KEPT_"
_UNSET = "(unset)"

_QUESTION = """\
import json, torch
there = torch.cuda.is_available()
print(json.dumps([torch.cuda.get_device_name(0) if there else None, torch.version.cuda or torch.version.hip]))
"""
_QUESTION_SECONDS = 60.0
"""Importing torch and opening the driver takes 3 to 10 s."""


def hide_gpus() -> None:
    """No GPU for this process and those it starts. Without effect where torch has one open already."""
    for name, hidden in _HIDDEN.items():
        os.environ.setdefault(_KEPT + name, os.environ.get(name, _UNSET))
        os.environ[name] = hidden


def environment_with_gpus() -> dict[str, str]:
    """This process's environment as it was before `hide_gpus`."""
    environment = dict(os.environ)
    for name in _HIDDEN:
        kept = environment.pop(_KEPT + name, None)
        if kept == _UNSET:
            environment.pop(name, None)
        elif kept is not None:
            environment[name] = kept
    return environment


def has_driver() -> bool:
    """Whether the machine has a sign of a GPU that torch could use."""
    return shutil.which("nvidia-smi") is not None or any(map(os.path.exists, ("/dev/nvidiactl", "/dev/kfd")))


def ask_torch() -> tuple[str | None, str | None]:
    """The first GPU's name, and the CUDA or ROCm version torch is built for; None where there is none.

    Asked in a process of its own, which may open the driver.

    Raises:
        RuntimeError: torch fails there; the text is its last line.
    """
    done = subprocess.run(
        [sys.executable, "-c", _QUESTION],
        env=environment_with_gpus(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_QUESTION_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise RuntimeError(lines[-1] if lines else f"exit code {done.returncode}")
    name, built_for = json.loads(done.stdout.splitlines()[-1])
    return name, built_for


def has_cuda_context() -> bool:
    """Whether torch has made one in this process."""
    return bool(sys.modules["torch"].cuda.is_initialized())
