"""`tigon tasks` as a person and as a script see it."""

from __future__ import annotations

import asyncio
import os
import pty
import subprocess
import sys
from pathlib import Path

from tigon.workflow.service import KernelWorkflow

NAME = "a_kernel_with_quite_a_long_name_indeed"
SOURCE = f"import torch\n\n\ndef {NAME}(x: torch.Tensor) -> torch.Tensor:\n    return x * x\n"
COMMAND = [sys.executable, "-m", "tigon", "tasks", "--workspace"]


def test_a_sub_folder_of_a_checkout_is_in_it(liger_workspace: Path) -> None:
    command = [sys.executable, "-m", "tigon", "tasks"]
    done = subprocess.run(command, cwd=liger_workspace / "src", capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert (liger_workspace / ".tigon").is_dir()


def task_in(root: Path) -> str:
    async def emit() -> str:
        flow = KernelWorkflow(root)
        profile = {"operation_name": NAME, "reference": {"source": SOURCE}}
        answer = await flow.emit_profile("liger-kernel-dev", profile, None, lambda text, fraction: None)
        await flow.close()
        return answer.task_id

    return asyncio.run(emit())


def test_ids_are_whole_in_a_pipe_and_on_a_narrow_terminal(liger_workspace: Path) -> None:
    task = task_in(liger_workspace)
    piped = subprocess.run([*COMMAND, str(liger_workspace)], capture_output=True, text=True, timeout=120)
    assert piped.stdout.split("\t")[:3] == [task, NAME, "awaiting_profile_review"]

    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "60", "TERM": "xterm"}
    process = subprocess.Popen([*COMMAND, str(liger_workspace)], stdout=theirs, env=environment)
    os.close(theirs)
    text = b""
    try:
        while chunk := os.read(ours, 65536):
            text += chunk
    except OSError:  # the end of a terminal, on Linux
        pass
    assert process.wait(timeout=120) == 0
    assert task in text.decode()
