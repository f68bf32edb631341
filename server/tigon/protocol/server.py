"""The MCP server: tools, prompt, resources and the skills extension, put together.

Nothing here imports torch, the command line or the workflow's heavier parts: see `tigon.protocol.start`.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver import server as sdk
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.request_state import RequestStateSecurity
from mcp_types import CallToolResult, InputRequiredResult

import tigon
from tigon.protocol.prompts import add_prompts
from tigon.protocol.refusals import explain, unknown_arguments
from tigon.protocol.resources import add_resources
from tigon.protocol.skills import SkillsExtension
from tigon.protocol.tools import TOOLS
from tigon.protocol.workplace import Workplace, WorkplaceServer

REVIEW_SECONDS = 86_400
"""How long a 2026-07-28 client may take to bring the human's answer: a day. The SDK's default
is ten minutes."""

STATIC_LISTS: tuple[CacheableMethod, ...] = (
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
)
UNCHANGING = CacheHint(ttl_ms=3_600_000, scope="public")
"""They change only with the installed version; an hour spares a client the asking."""

SUMMARY = "Triton kernels for Liger-Kernel: traced, generated, verified, and approved by a human."

INSTRUCTIONS = """\
Tigon takes a PyTorch operation to a verified Liger-Kernel contribution, and holds the gates on the way: it
traces, generates, checks and measures; you reason, write what is left, and read its findings; a human
decides.

The order: classify_tier, emit_profile, request_review (the human approves the profile), scaffold_kernel,
run_verify, finish_task (the human approves the result). A refused call names the gate, the reason and the
next step: do that step, do not look for a way round. Every answer has `state` and `next`; after a break,
task_status says where things stand.

The reference is the contract: write it plainly in PyTorch, as one would explain the operation. Facts are
computed from it; where your idea and a fact disagree, look at the fact first. `pending` means that nobody
has decided: stop and tell the human. Never touch .tigon/, and never run `tigon review` yourself.

The prompt liger-kernel-dev and skill://liger-kernel-dev/SKILL.md say what to think about at each stage."""
"""At most 1,500 characters; some clients cut at 2,048."""


class TigonServer(WorkplaceServer):
    """A server with a workspace, whose failed calls are refusals that a model can read."""

    def __init__(self, workplace: Workplace) -> None:
        self.workplace = workplace
        super().__init__(
            "tigon",
            title="Tigon",
            description=SUMMARY,
            instructions=INSTRUCTIONS,
            version=tigon.__version__,
            extensions=[SkillsExtension()],
            lifespan=_closing_the_workplace,
            cache_hints=dict.fromkeys(STATIC_LISTS, UNCHANGING),
            request_state_security=RequestStateSecurity.ephemeral(ttl=REVIEW_SECONDS),
        )
        for spec in TOOLS:
            self.add_tool(
                spec.run,
                title=spec.title,
                description=spec.description,
                annotations=spec.annotations,
                structured_output=False,
            )
        add_prompts(self)
        add_resources(self, workplace)

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """As the SDK's, but every failure comes back as a refusal (see `tigon.protocol.refusals`)."""
        tool = self._tool_manager.get_tool(name)
        if tool is not None:
            refused = unknown_arguments(name, arguments, list(tool.parameters.get("properties", {})))
            if refused is not None:
                return refused
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as problem:
            return explain(name, problem)


def build_server(workspace_option: Path | None) -> TigonServer:
    """A server that has not started; where it works is settled at its first call."""
    # The SDK's own imports rich, for 0.1 s, to draw boxes on a stderr that clients store as plain text.
    setattr(sdk, "configure_logging", _log_to_stderr)  # noqa: B010 - not part of its typed surface
    return TigonServer(Workplace(workspace_option))


def _log_to_stderr(level: str = "INFO") -> None:
    logging.basicConfig(
        level=logging.WARNING, stream=sys.stderr, format="%(asctime)s %(name)s %(levelname)s: %(message)s"
    )


@asynccontextmanager
async def _closing_the_workplace(server: MCPServer[Any]) -> AsyncIterator[None]:
    assert isinstance(server, WorkplaceServer)
    try:
        yield None
    finally:
        await server.workplace.close()
