"""The workspace that a server works in, and its workflow, found and loaded at the first call.

Not at the start: a server must list its tools at once, and also in a folder that is no workspace yet.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import Context, MCPServer

from tigon.workflow.refusal import Refusal

if TYPE_CHECKING:
    from tigon.workflow.service import KernelWorkflow


class Workplace:
    """option: what --workspace said; wrong or not, it is looked at only when a tool is called."""

    def __init__(self, option: Path | None) -> None:
        self._option = option
        self._workflow: KernelWorkflow | None = None

    def root(self) -> Path:
        """The workspace that --workspace is or is in, else $CLAUDE_PROJECT_DIR, else the current folder.

        Raises:
            Refusal: it is not a checkout in Liger's layout, nor in one.
        """
        from tigon.workspace.layout import find_workspace

        project = os.environ.get("CLAUDE_PROJECT_DIR")
        folder = self._option or Path.cwd()
        if self._option is None and project and find_workspace(Path(project)):
            folder = Path(project)
        root = find_workspace(folder)
        if root is None:
            raise Refusal(
                "workspace",
                f"{folder} is not a Liger checkout, nor in one (it has no src/liger_kernel/ops).",
                "tell the human to run `tigon init PATH` and to start the server with --workspace PATH, "
                "or to start it in a checkout.",
            )
        return root

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


class WorkplaceServer(MCPServer[Any]):
    """A server that works in a workspace; its tools find the workflow through it."""

    workplace: Workplace


def workflow_of(ctx: Context[Any, Any]) -> KernelWorkflow:
    """The workflow of the server that handles this call."""
    server = ctx.mcp_server
    assert isinstance(server, WorkplaceServer)
    return server.workplace.workflow()
