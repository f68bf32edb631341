"""The workspace that a command works in."""

from __future__ import annotations

from pathlib import Path

from tigon.workflow.refusal import Refusal
from tigon.workflow.service import KernelWorkflow
from tigon.workspace.layout import find_workspace


def workspace_root(option: Path | None) -> Path:
    """The checkout that --workspace, else this folder, is or is in.

    Raises:
        Refusal: there is none.
    """
    folder = (option or Path.cwd()).expanduser().resolve()
    root = find_workspace(folder)
    if root is None:
        raise Refusal(
            "workspace",
            f"{folder} is not a Liger checkout, nor in one (it has no src/liger_kernel/ops).",
            "go to one, name it with --workspace, or make one with `tigon init PATH`.",
        )
    return root


def open_workflow(option: Path | None) -> KernelWorkflow:
    return KernelWorkflow(workspace_root(option))
