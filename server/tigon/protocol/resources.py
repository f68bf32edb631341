"""What can be read: the index of Liger's kernels, and what a human reads of a task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError

from tigon.assets import read_reference
from tigon.protocol.workplace import Workplace
from tigon.workflow.refusal import Refusal


def add_resources(server: MCPServer[Any], workplace: Workplace) -> None:
    @server.resource(
        "liger://index",
        name="liger-index",
        title="Liger's kernels by tier",
        description="Every kernel of Liger, by tier, with what it computes: what to compare with and read.",
        mime_type="text/markdown",
    )
    def index() -> str:
        return kernel_index(read_reference("kernels.toml"))

    @server.resource(
        "tigon://tasks/{task_id}/profile",
        name="task-profile",
        title="A task's profile",
        description="The profile as the human reads it.",
        mime_type="text/markdown",
    )
    async def profile(task_id: str) -> str:
        """From the ledger, like the report: copies on disk can be edited."""
        with _told():
            return workplace.workflow().profile_text(task_id)

    @server.resource(
        "tigon://tasks/{task_id}/report",
        name="task-report",
        title="A task's report",
        description="The report of the last run_verify: gates, findings, attempts.",
        mime_type="text/markdown",
    )
    async def report(task_id: str) -> str:
        with _told():
            return workplace.workflow().report_text(task_id)


def kernel_index(catalogue: dict[str, Any]) -> str:
    """`references/kernels.toml` as Markdown, by tier; the kernel to read first in each tier comes first."""
    lines = ["# Liger's kernels by tier", "", "Read one with `get_reference` (`kernel` is its name here)."]
    for tier, meaning in catalogue["tiers"].items():
        lines += ["", f"## Tier {tier}: {meaning}", ""]
        kernels = [kernel for kernel in catalogue["kernel"] if str(kernel["tier"]) == tier]
        kernels.sort(key=lambda kernel: not kernel.get("exemplar", False))
        for kernel in kernels:
            first = " (read this one first)" if kernel.get("exemplar") else ""
            lines.append(f"- `{kernel['stem']}`{first}: {kernel['does']}")
    return "\n".join(lines) + "\n"


@contextmanager
def _told() -> Iterator[None]:
    """A refusal as the SDK's error, which a client shows with its text."""
    try:
        yield
    except Refusal as refusal:
        raise ResourceNotFoundError(str(refusal)) from refusal
