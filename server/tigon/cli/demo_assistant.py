"""The demo's two people: an assistant that calls tools over a real MCP session, and a human who answers
dialogs.

The assistant does what a good one does, and once what a hasty one would: it asks for the scaffold before
the review.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client import ClientRequestContext
from mcp_types import (
    CallToolResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    Implementation,
    TextContent,
)
from rich.console import Console
from rich.markdown import Markdown
from rich.panel import Panel
from rich.status import Status

from tigon import __version__

APPROVE = "approve "
"""How the one choice begins that approves; the rest is the hash of what is shown."""
QUESTION_LINES = 48
"""Of each question, shown in the demo: a screenful. The real dialog has the whole profile, or the whole diff."""
MARKS = {"passed": "[green]passed[/]", "failed": "[red]failed[/]", "flagged": "[yellow]flagged[/]"}


class DemoFailed(Exception):
    """A gate failed, or the server did not do what the demo says it does."""


@dataclass(frozen=True)
class Kernel:
    """What the assistant is asked for. source: the reference; inputs: as in `classify_tier`."""

    operation_name: str
    say: str
    source: str
    inputs: list[dict[str, Any]]

    @property
    def reference(self) -> dict[str, Any]:
        return {"source": self.source, "entry": self.operation_name, "inputs": self.inputs}


@dataclass
class Assistant:
    """A session with the server; `status` is the line that moves while a call runs."""

    client: Client
    console: Console
    root: Path
    status: Status
    shown: set[str] = field(default_factory=set)

    async def write_kernel(self, kernel: Kernel) -> Path:
        """The whole loop for one kernel; the report's path.

        Raises:
            DemoFailed: something did not pass.
        """
        self.console.print(kernel.say)
        self.console.print(Markdown(f"```python\n{kernel.source}```"))
        tier = await self.call("classify_tier", source=kernel.source, entry=kernel.operation_name, inputs=kernel.inputs)
        self.tell(f"tier {tier['tier']}: {tier['evidence'][0]}")
        task_id = await self._profile(kernel)
        await self._hasty_scaffold(task_id)
        self._decided(await self.call("request_review", task_id=task_id))
        for file in (await self.call("scaffold_kernel", task_id=task_id))["files"]:
            self.tell(f"{file['action']:<9} {file['path']}")
        await self._verify(task_id)
        finished = await self.call("finish_task", task_id=task_id)
        self._decided(finished)
        report: str = finished["report_path"]
        return self.root / report

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool that must work; its structured content."""
        result = await self._send(tool, arguments)
        if result.is_error or result.structured_content is None:
            raise DemoFailed(f"{tool}: {text_of(result)}")
        content: dict[str, Any] = result.structured_content
        return content

    def tell(self, text: str) -> None:
        self.console.print(f"  {text}", markup=False, soft_wrap=True)

    async def _profile(self, kernel: Kernel) -> str:
        profile = {"operation_name": kernel.operation_name, "reference": kernel.reference}
        emitted = await self.call("emit_profile", workflow="liger-kernel-dev", profile=profile)
        if emitted["problems"]:
            raise DemoFailed(f"emit_profile: {emitted['problems'][0]}")
        self.tell(f"task {emitted['task_id']}, profile {emitted['profile_hash'][:8]}, no claim contradicts a fact")
        task_id: str = emitted["task_id"]
        return task_id

    async def _hasty_scaffold(self, task_id: str) -> None:
        result = await self._send("scaffold_kernel", {"task_id": task_id})
        if not result.is_error:
            raise DemoFailed("scaffold_kernel wrote files although nobody had approved the profile")
        self.console.print("  [green]refused, as it should be:[/] ", end="")
        self.console.print(text_of(result), markup=False, soft_wrap=True)

    async def _verify(self, task_id: str) -> None:
        self.shown.clear()
        while True:
            answer = await self.call("run_verify", task_id=task_id, device="cpu")
            for gate in answer["gates"]:
                self._show_gate(gate)
            if not answer.get("running"):
                break
        if not answer["passed"]:
            raise DemoFailed(f"run_verify: {answer['next']}")

    def _show_gate(self, gate: dict[str, Any]) -> None:
        if gate["name"] in self.shown:
            return
        self.shown.add(gate["name"])
        mark = MARKS.get(gate["status"], gate["status"])
        self.console.print(f"  {mark} {gate['name']} ({gate['kind']}): ", end="")
        self.console.print(gate["detail"], markup=False, soft_wrap=True)

    def _decided(self, answer: dict[str, Any]) -> None:
        if answer["decision"] != "approved":
            raise DemoFailed(f"the review ended as {answer['decision']}: {answer['next']}")
        self.tell(f"approved through: {answer['channel']}")

    async def _send(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        self.console.print(f"[bold cyan]{tool}[/]")
        self.status.update(tool)
        self.status.start()

        async def show(progress: float, total: float | None, message: str | None) -> None:
            self.status.update(f"{tool}: {message or ''}")

        try:
            return await self.client.call_tool(tool, arguments, progress_callback=show)
        finally:
            self.status.stop()


@asynccontextmanager
async def connect(root: Path, console: Console) -> AsyncIterator[Assistant]:
    """A server in its own process, working in `root`, and an assistant that talks to it."""
    status = Status("", console=console)

    async def human(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        status.stop()
        return answer_as_human(params, console)

    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "tigon", "serve", "--workspace", str(root)],
        env=dict(os.environ),
    )
    failure: Exception | None = None
    me = Implementation(name="tigon-demo", version=__version__)
    async with Client(server, elicitation_callback=human, client_info=me) as client:
        try:
            yield Assistant(client, console, root, status)
        except Exception as problem:  # raised below: the client's task group would wrap it
            failure = problem
    if failure is not None:
        raise failure


def answer_as_human(params: ElicitRequestParams, console: Console) -> ElicitResult:
    """Show the dialog and choose what approves, as a human would who has read it and agrees."""
    if not isinstance(params, ElicitRequestFormParams):
        return ElicitResult(action="cancel")
    question = Markdown(opening_of(params.message))
    console.print(Panel(question, title="the human is asked", border_style="magenta"))
    choices = params.requested_schema["properties"]["decision"]["enum"]
    choice = next(choice for choice in choices if choice.startswith(APPROVE))
    console.print(f"  the human chooses: [magenta]{choice}[/]")
    return ElicitResult(action="accept", content={"decision": choice})


def opening_of(message: str) -> str:
    """Whole sections of a question, up to a screenful, and how much more there is."""
    lines = message.splitlines()
    if len(lines) <= QUESTION_LINES:
        return message
    headings = [number for number in range(1, QUESTION_LINES) if lines[number].startswith("## ")]
    shown = headings[-1] if headings else QUESTION_LINES
    return "\n".join([*lines[:shown], f"*and {len(lines) - shown} more lines: a client shows them all*"])


def text_of(result: CallToolResult) -> str:
    return " ".join(block.text for block in result.content if isinstance(block, TextContent))
