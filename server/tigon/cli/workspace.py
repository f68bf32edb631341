"""The workspace that a command works in."""

from __future__ import annotations

from pathlib import Path

from tigon.workflow.refusal import Refusal
from tigon.workflow.service import KernelWorkflow
from tigon.workspace.layout import is_workspace


def workspace_root(option: Path | None) -> Path:
    """--workspace, else this folder.

    Raises:
        Refusal: it is not a Liger checkout.
    """
    root = (option or Path.cwd()).expanduser().resolve()
    if not is_workspace(root):
        raise Refusal(
            "workspace",
            f"{root} is not a Liger checkout (it has no src/liger_kernel/ops).",
            "go to one, name it with --workspace, or make one with `tigon init PATH`.",
        )
    return root


def open_workflow(option: Path | None) -> KernelWorkflow:
    return KernelWorkflow(workspace_root(option))
