"""Asking the human, in the client's own dialog, and what an answer counts for.

One resolver serves both protocol eras. A 2025-11-25 client is asked in the middle of the call, with a limit
on the waiting. A 2026-07-28 client gets the question as the result of the call and repeats the call with the
answer; the SDK seals the question and drops an answer to any other wording of it.

Invariants:
- Approval is one exact value, and that value carries the start of the hash that was shown. It is
  not the form's first choice, so a client that fills forms in by itself does not hit it.
- A decline, a closed dialog, silence, a client that cannot ask, and an answer that makes no sense are all
  `pending`: nobody has decided. Only "approve <hash>" and "send back" are a human's decision.
- The decision is recorded for the hash that the question was built from; the workflow compares it with what
  is
  current then.
- The resolver only reads, since the SDK may run it twice.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, ClassVar

import anyio
from mcp.server.elicitation import AcceptedElicitation, CancelledElicitation, DeclinedElicitation
from mcp.server.mcpserver import Context, Elicit
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult
from pydantic import BaseModel, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from tigon.protocol.progress import reporting
from tigon.protocol.workplace import workflow_of
from tigon.workflow.answers import Decision
from tigon.workflow.questions import ReviewQuestion

WAIT_SECONDS = 600.0
"""How long a human may take to answer in the dialog of a 2025-11-25 client, if TIGON_REVIEW_SECONDS is not
set. Some clients declare that they can ask and never do; then this is how long the assistant is held up."""

SHORT_HASH = 8
"""Characters of the hash in the choice: enough to tell two profiles apart, few enough to compare by eye."""

NOT_NOW = "not now"
SEND_BACK = "send back"


@dataclass(frozen=True)
class Said:
    """What came of asking. hash: of what was shown; channel: who carried the question."""

    hash: str
    decision: Decision
    channel: str
    comment: str = ""


class ReviewForm(BaseModel):
    """The form of one question; subclassed for each, since its choices name the hash.

    It takes any content: the SDK turns content that does not fit into an error of the call, but for us it
    is an answer that decides nothing.
    """

    question: ClassVar[ReviewQuestion]
    content: dict[str, Any]

    @model_validator(mode="before")
    @classmethod
    def _take_anything(cls, content: Any) -> Any:
        return {"content": content if isinstance(content, dict) else {}}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {
                "decision": {
                    "type": "string",
                    "title": "Decision",
                    "enum": [NOT_NOW, SEND_BACK, approval_of(cls.question)],
                },
                "comment": {
                    "type": "string",
                    "title": "Comment (for the assistant; say why if you send it back)",
                },
            },
            "required": ["decision"],
        }


def approval_of(question: ReviewQuestion) -> str:
    """The one value that approves what the question shows."""
    return f"approve {question.hash[:SHORT_HASH]}"


def form_for(question: ReviewQuestion) -> type[ReviewForm]:
    return type("ReviewForm", (ReviewForm,), {"question": question, "__module__": __name__})


def message_of(question: ReviewQuestion) -> str:
    return (
        f"{question.title}\n\n{question.text}\n\n"
        f"This is {question.hash[:SHORT_HASH]} (in full: {question.hash}). "
        f'Only "{approval_of(question)}" approves it; closing this dialog decides nothing.'
    )


async def ask_human(task_id: str, ctx: Context[Any, Any]) -> Said | Elicit[ReviewForm]:
    """The resolver of `request_review`: ask about whatever of a task waits for a human.

    Raises:
        Refusal: nothing does.
    """
    question = workflow_of(ctx).pending_review(task_id)
    if not _can_ask(ctx):
        return Said(question.hash, "pending", "none")
    if not ctx.session.can_send_request:
        if _accepted_without_content(ctx):
            return Said(question.hash, "pending", channel_of(ctx))
        return Elicit(message_of(question), form_for(question))
    return await _ask_now(question, ctx)


async def ask_to_finish(task_id: str, ctx: Context[Any, Any]) -> Said | Elicit[ReviewForm]:
    """The resolver of `finish_task`: ask about the final diff and report, and about nothing else.

    Raises:
        Refusal: the final review is not due.
    """
    workflow_of(ctx).check_final(task_id)
    return await ask_human(task_id, ctx)


def heard(outcome: Any, task_id: str, ctx: Context[Any, Any]) -> Said:
    """What the resolver's outcome says."""
    if isinstance(outcome, AcceptedElicitation):
        return outcome.data if isinstance(outcome.data, Said) else read_form(outcome.data, channel_of(ctx))
    # Declined or cancelled by a 2026-07-28 client: the SDK has checked that the question was this one.
    assert isinstance(outcome, (DeclinedElicitation, CancelledElicitation))
    return Said(workflow_of(ctx).pending_review(task_id).hash, "pending", channel_of(ctx))


def channel_of(ctx: Context[Any, Any]) -> str:
    """Which program carried the question, as "elicitation, client NAME VERSION". Not who answered it."""
    params = ctx.session.client_params
    client = "unknown" if params is None else f"{params.client_info.name} {params.client_info.version}".strip()
    return f"elicitation, client {client[:80]}"


async def _ask_now(question: ReviewQuestion, ctx: Context[Any, Any]) -> Said:
    channel = channel_of(ctx)
    nothing = Said(question.hash, "pending", channel)
    limit = wait_seconds()
    async with reporting(ctx, f"waiting for the human to answer: {question.title}"):
        with anyio.move_on_after(limit):
            try:
                answer = await ctx.elicit(message_of(question), form_for(question))
            except (ValueError, MCPError):  # accepted without any content; or the client cannot after all
                return nothing
            if isinstance(answer, AcceptedElicitation):
                return read_form(answer.data, channel)
    return nothing


def read_form(form: ReviewForm, channel: str) -> Said:
    """What a filled-in form counts for; anything but an exact choice decides nothing."""
    decision = form.content.get("decision")
    comment = form.content.get("comment")
    text = comment.strip() if isinstance(comment, str) else ""
    outcomes: dict[Any, Decision] = {approval_of(form.question): "approved", SEND_BACK: "rejected"}
    outcome = outcomes.get(decision, "pending") if isinstance(decision, str) else "pending"
    return Said(form.question.hash, outcome, channel, text)


def wait_seconds() -> float:
    """TIGON_REVIEW_SECONDS, or the default where it is not a positive number."""
    try:
        seconds = float(os.environ.get("TIGON_REVIEW_SECONDS", ""))
    except ValueError:
        return WAIT_SECONDS
    return seconds if seconds > 0 else WAIT_SECONDS


def _can_ask(ctx: Context[Any, Any]) -> bool:
    """Whether the client declared forms. `elicitation: {}` means forms; only `url` does not."""
    capabilities = ctx.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _accepted_without_content(ctx: Context[Any, Any]) -> bool:
    """Seen here first: the SDK would fail the call over it."""
    return any(
        isinstance(answer, ElicitResult) and answer.action == "accept" and answer.content is None
        for answer in (ctx.input_responses or {}).values()
    )
