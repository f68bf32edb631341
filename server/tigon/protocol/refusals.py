"""How a call that did not work looks to a model: a tool error whose text says what to do next.

Clients show the model only the text of an error, so everything is in it. It is never a protocol error,
which a model does not see at all, and never a traceback.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, TextContent
from pydantic import ValidationError

from tigon.workflow.refusal import Refusal

log = logging.getLogger("tigon")


def refuse(refusal: Refusal) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=str(refusal))],
        structured_content={
            "state": "refused",
            "gate": refusal.gate,
            "reason": refusal.reason,
            "next": refusal.next_step,
        },
        is_error=True,
    )


def explain(tool: str, problem: ToolError) -> CallToolResult:
    """What the SDK raised, as a refusal: its cause is a Refusal, bad arguments, a failed job or a defect."""
    from tigon.jobs.runner import JobFailed  # not at the start of the server, which runs no job

    if isinstance(problem.__cause__, Refusal):
        return refuse(problem.__cause__)
    if isinstance(problem.__cause__, ValidationError):
        reason = _bad_arguments(tool, problem.__cause__)
        return refuse(Refusal("input", reason, "correct the arguments and call again."))
    if isinstance(problem.__cause__, JobFailed):
        failure = problem.__cause__.failure
        next_step = failure.next_step or "correct what it names and call again, or run `tigon doctor`."
        return refuse(Refusal("job", failure.message, next_step))
    if problem.__cause__ is None:
        return refuse(Refusal("input", f"{problem}.", "call one of the tools that tools/list names."))
    log.error("tool %s failed", tool, exc_info=problem.__cause__)
    reason = f"{tool} failed inside Tigon ({type(problem.__cause__).__name__}); the server's log has the details."
    return refuse(Refusal("server", reason, "call `task_status`, then try again; if it repeats, tell the human."))


def unknown_arguments(tool: str, given: Mapping[str, Any], known: Sequence[str]) -> CallToolResult | None:
    """A misspelt argument would otherwise be dropped in silence, and its default used."""
    unknown = sorted(set(given) - set(known))
    if not unknown:
        return None
    reason = f"{tool} has no argument {unknown[0]!r}."
    return refuse(Refusal("input", reason, f"its arguments are: {', '.join(known) or 'none'}."))


def _bad_arguments(tool: str, problem: ValidationError) -> str:
    """One line for each wrong argument, without pydantic's links and without repeating long values."""
    lines = []
    for error in problem.errors(include_url=False, include_context=False):
        where = ".".join(str(part) for part in error["loc"]) or "arguments"
        got = "" if error["type"] == "missing" else f", not {_short(error['input'])}"
        lines.append(f"`{where}`: {error['msg'][:1].lower()}{error['msg'][1:]}{got}")
    return f"{tool} cannot read its arguments: {'; '.join(lines)}."


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
