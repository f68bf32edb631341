"""A real session with the installed server, for tests that are ordinary functions.

The server is `python -m tigon serve` in a process of its own, over stdio; the client runs in a portal's loop.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
from anyio.from_thread import BlockingPortal
from mcp import Client, StdioServerParameters
from mcp.client import ClientRequestContext
from mcp_types import (
    CallToolResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    TextContent,
)

ERAS = {"2025-11-25": "legacy", "2026-07-28": "auto"}
Human = Callable[[ElicitRequestFormParams], ElicitResult | ErrorData]


class Session:
    """A client of one server, for synchronous tests.

    human: answers its dialogs; silent: nobody does; before_answer: what happens while the next one is open;
    asked: the dialogs so far; progress: the notifications of the last call.
    """

    def __init__(self, portal: BlockingPortal) -> None:
        self.portal = portal
        self.client: Client
        self.human: Human = lambda question: ElicitResult(action="cancel")
        self.asked: list[ElicitRequestFormParams] = []
        self.before_answer: Callable[[], Awaitable[None]] | None = None
        self.silent = False
        self.progress: list[tuple[float, float | None, str | None]] = []

    def call(self, tool: str, **arguments: Any) -> CallToolResult:
        self.progress.clear()
        return self.portal.call(self._call, tool, arguments)

    def works(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured content of a call that must not be refused."""
        result = self.call(tool, **arguments)
        assert not result.is_error, text_of(result)
        assert result.structured_content is not None
        return result.structured_content

    def refused(self, tool: str, **arguments: Any) -> str:
        """The text of a call that must be refused: all that a model sees of it."""
        result = self.call(tool, **arguments)
        assert result.is_error, result.structured_content
        return text_of(result)

    async def _call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        async def note(progress: float, total: float | None, message: str | None) -> None:
            self.progress.append((progress, total, message))

        return await self.client.call_tool(tool, arguments, progress_callback=note)

    async def answer(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        assert isinstance(params, ElicitRequestFormParams)
        self.asked.append(params)
        if self.silent:
            await anyio.sleep_forever()
        if self.before_answer is not None:
            meanwhile, self.before_answer = self.before_answer, None
            await meanwhile()
        return self.human(params)


@contextmanager
def connected(
    portal: BlockingPortal, folder: Path, era: str, can_ask: bool = True, **environment: str
) -> Iterator[Session]:
    """A session with a server that was started in `folder`."""
    session = Session(portal)
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "tigon", "serve"], env={**os.environ, **environment}, cwd=folder
    )
    client = Client(server, mode=ERAS[era], elicitation_callback=session.answer if can_ask else None)
    with portal.wrap_async_context_manager(client) as session.client:
        assert session.client.protocol_version == era
        yield session


def text_of(result: CallToolResult) -> str:
    return "".join(block.text for block in result.content if isinstance(block, TextContent))
