"""The workspace that a server works in, and its workflow, found and loaded at the first call.

Not at the start: a server must list its tools at once, and also in a folder that is no workspace yet.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from mcp.server.mcpserver import Context

from tigon.workflow.refusal import Refusal

if TYPE_CHECKING:
    from tigon.workflow.service import KernelWorkflow


class Workplace:
    """option: what --workspace said; wrong or not, it is looked at only when a tool is called."""

    def __init__(self, option: Path | None) -> None:
        self._option = option
        self._workflow: KernelWorkflow | None = None

    def root(self) -> Path:
        """The workspace: --workspace, else $CLAUDE_PROJECT_DIR if that is one, else the current folder.

        Raises:
            Refusal: it is not a checkout in Liger's layout.
        """
        from tigon.workspace.layout import is_workspace

        project = os.environ.get("CLAUDE_PROJECT_DIR")
        if self._option is not None:
            root = self._option.expanduser()
        elif project and is_workspace(Path(project)):
            root = Path(project)
        else:
            root = Path.cwd()
        if not is_workspace(root):
            raise Refusal(
                "workspace",
                f"{root} is not a Liger checkout (it has no src/liger_kernel/ops).",
                "tell the human to run `tigon init PATH` and to start the server with --workspace PATH, "
                "or to start it in a checkout.",
            )
        return root.resolve()

    def workflow(self) -> KernelWorkflow:
        if self._workflow is None:
            root = self.root()
            from tigon.workflow.service import KernelWorkflow

            self._workflow = KernelWorkflow(root)
            self._workflow.jobs.warm()  # whatever is called first, a trace follows
        return self._workflow

    async def close(self) -> None:
        if self._workflow is not None:
            await self._workflow.close()


def workflow_of(ctx: Context[Any, Any]) -> KernelWorkflow:
    """The workflow of the server that handles this call."""
    from tigon.protocol.server import TigonServer

    return cast(TigonServer, ctx.mcp_server).workplace.workflow()
