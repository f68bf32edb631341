"""The prompt `liger-kernel-dev`: the skill's text, with what the human wants put in front.

The stage files are part of it: most clients that show prompts cannot follow a link to a `skill://` resource.
"""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from pydantic import Field

from tigon.protocol.skills import skill


def add_prompts(server: MCPServer[Any]) -> None:
    server.prompt(
        name="liger-kernel-dev",
        title="Write a Liger kernel",
        description="Take a PyTorch operation to a verified Liger contribution, with a human's approval.",
    )(liger_kernel_dev)


def liger_kernel_dev(
    operation: Annotated[str, Field(description="The operation, in words or as a formula")],
    source: Annotated[str, Field(description="Its reference, if there is one: file.py:name or package:name")] = "",
    task_id: Annotated[str, Field(description="A task to go on with")] = "",
) -> str:
    """The text of the prompt."""
    wanted = [f"Write a Liger kernel for: {operation}"]
    if source:
        wanted.append(f"The PyTorch reference is {source}.")
    if task_id:
        wanted.append(f"Go on with task {task_id}; begin with task_status.")
    wanted.append("Use the tools of the `tigon` server, in this way:")
    loaded = skill("liger-kernel-dev")
    stages = [file.text.strip() for file in loaded.files[1:]]
    return "\n\n".join([*wanted, loaded.body.strip(), *stages]) + "\n"
