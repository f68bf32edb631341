"""The human gate over real stdio: every way in which a question can end, with and without a dialog."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal
from mcp import MCPError
from mcp_types import (
    INVALID_REQUEST,
    ElicitRequestFormParams,
    ElicitResult,
    ErrorData,
    TextResourceContents,
)
from stdio_session import ERAS, Session, connected, text_of

DOUBLE_SILU = """\
import torch

def double_silu(x: torch.Tensor, scale: float = 2.0) -> torch.Tensor:
    return scale * x * torch.sigmoid(x)
"""


def profile(operation: str) -> dict[str, Any]:
    source = DOUBLE_SILU.replace("double_silu", operation)
    inputs = [{"name": "x", "shape": [4, 8]}, {"name": "scale", "dtype": "float", "value": 2.0}]
    return {
        "operation_name": operation,
        "reference": {"source": source, "entry": operation, "inputs": inputs},
    }


_NUMBERS = itertools.count(1)


def emit(session: Session) -> dict[str, Any]:
    """A task of its own name: one that is approved keeps its name from others."""
    operation = f"double_silu_{next(_NUMBERS)}"
    answer = session.works("emit_profile", workflow="liger-kernel-dev", profile=profile(operation))
    assert answer["problems"] == []
    return {**answer, "operation": operation}


def choosing(begins: str, comment: str | None = None) -> Callable[[ElicitRequestFormParams], ElicitResult]:
    """A human who picks the choice that begins so."""

    def human(question: ElicitRequestFormParams) -> ElicitResult:
        choices = question.requested_schema["properties"]["decision"]["enum"]
        content: dict[str, Any] = {"decision": next(c for c in choices if c.startswith(begins))}
        return ElicitResult(action="accept", content=content if comment is None else {**content, "comment": comment})

    return human


@pytest.fixture(scope="module")
def author(portal: BlockingPortal, workspace: Path) -> Iterator[Session]:
    """The session that writes profiles: the only one whose server needs torch."""
    with connected(portal, workspace, "2026-07-28") as session:
        yield session


@pytest.fixture(scope="module")
def asking(portal: BlockingPortal, era: str, workspace: Path) -> Iterator[Session]:
    """A session in each era with another server on the same workspace; its client shows dialogs."""
    with connected(portal, workspace, era) as session:
        yield session


@pytest.fixture
def pending(author: Session, asking: Session) -> dict[str, Any]:
    """A task whose profile waits, and no question asked yet."""
    asking.asked.clear()
    return emit(author)


@pytest.fixture(scope="module")
def undecided(author: Session) -> str:
    """One task for everything that decides nothing."""
    task_id: str = emit(author)["task_id"]
    return task_id


def test_approval_opens_the_next_stage(asking: Session, pending: dict[str, Any]) -> None:
    task_id, shown = pending["task_id"], pending["profile_hash"][:8]
    asking.human = choosing("approve")
    answer = asking.works("request_review", task_id=task_id)
    assert (answer["decision"], answer["state"]) == ("approved", "acting")
    assert answer["channel"].startswith("elicitation, client mcp")
    (question,) = asking.asked
    assert shown in question.message and "double_silu" in question.message
    assert f"approve {shown}" in question.requested_schema["properties"]["decision"]["enum"]
    assert asking.refused("request_review", task_id=task_id).startswith("gate ")


def test_sent_back_with_a_comment(asking: Session, pending: dict[str, Any]) -> None:
    task_id = pending["task_id"]
    asking.human = choosing("send back", comment="call it twice_silu")
    answer = asking.works("request_review", task_id=task_id)
    assert (answer["decision"], answer["comment"]) == ("rejected", "call it twice_silu")
    assert asking.refused("scaffold_kernel", task_id=task_id).startswith("gate ")


UNDECIDED = {
    "declined": ElicitResult(action="decline"),
    "cancelled": ElicitResult(action="cancel"),
    "put off": ElicitResult(action="accept", content={"decision": "not now"}),
    "another hash": ElicitResult(action="accept", content={"decision": "approve 00000000"}),
    "no hash": ElicitResult(action="accept", content={"decision": "approve"}),
    "another field": ElicitResult(action="accept", content={"approve": True}),
    "an empty form": ElicitResult(action="accept", content={}),
    "no form": ElicitResult(action="accept"),
}


@pytest.mark.parametrize("answer", UNDECIDED.values(), ids=UNDECIDED)
def test_what_decides_nothing_leaves_it_pending(asking: Session, undecided: str, answer: ElicitResult) -> None:
    asking.human = lambda question: answer
    asking.asked.clear()
    said = asking.works("request_review", task_id=undecided)
    assert len(asking.asked) == 1
    assert (said["decision"], said["state"]) == ("pending", "awaiting_profile_review")
    assert f"tigon review {undecided}" in said["next"]
    assert asking.refused("scaffold_kernel", task_id=undecided).startswith("gate ")


def test_a_decline_is_not_final(asking: Session, pending: dict[str, Any]) -> None:
    asking.human = lambda question: ElicitResult(action="decline")
    assert asking.works("request_review", task_id=pending["task_id"])["decision"] == "pending"
    asking.human = choosing("approve")
    assert asking.works("request_review", task_id=pending["task_id"])["decision"] == "approved"


def test_an_answer_to_an_older_profile_does_not_count(
    author: Session, asking: Session, pending: dict[str, Any]
) -> None:
    """The profile is revised while the dialog is open. The human approves what was on the screen."""
    task_id = pending["task_id"]
    revised = {**profile(pending["operation"]), "benchmark_x_label": "hidden size"}

    async def revise() -> None:
        arguments = {"workflow": "liger-kernel-dev", "profile": revised, "task_id": task_id}
        result = await author.client.call_tool("emit_profile", arguments)
        assert not result.is_error, text_of(result)

    def human(question: ElicitRequestFormParams) -> ElicitResult:
        # A modern client is asked again, about the new profile: that one is not answered.
        return choosing("approve")(question) if len(asking.asked) == 1 else ElicitResult(action="cancel")

    asking.human = human
    asking.before_answer = revise
    result = asking.call("request_review", task_id=task_id)
    assert result.is_error or (result.structured_content or {})["decision"] == "pending"
    assert asking.refused("scaffold_kernel", task_id=task_id).startswith("gate ")


def test_nothing_pending_is_refused_without_a_question(asking: Session) -> None:
    asking.asked.clear()
    text = asking.refused("request_review", task_id="no-such-task")
    assert text.startswith("gate ") and " Next: " in text
    assert asking.asked == []


def test_finishing_before_the_time_is_refused_without_a_question(asking: Session, undecided: str) -> None:
    asking.asked.clear()
    assert asking.refused("finish_task", task_id=undecided).startswith("gate final_review: ")
    assert asking.asked == []


def test_the_profile_can_be_read(asking: Session, undecided: str) -> None:
    uri = f"tigon://tasks/{undecided}/profile"
    (content,) = asking.portal.call(asking.client.read_resource, uri).contents
    assert isinstance(content, TextResourceContents)
    assert content.mime_type == "text/markdown"
    assert "double_silu" in content.text and "torch.sigmoid" in content.text


def test_a_report_that_is_not_there_is_said(asking: Session, undecided: str) -> None:
    with pytest.raises(MCPError, match="no report yet"):
        asking.portal.call(asking.client.read_resource, f"tigon://tasks/{undecided}/report")


def test_a_client_that_cannot_ask(portal: BlockingPortal, era: str, workspace: Path, undecided: str) -> None:
    with connected(portal, workspace, era, can_ask=False) as session:
        answer = session.works("request_review", task_id=undecided)
        assert (answer["decision"], answer["channel"]) == ("pending", "none")
        assert f"tigon review {undecided}" in answer["next"]
        assert session.refused("scaffold_kernel", task_id=undecided).startswith("gate ")


def test_silence_and_errors_end_as_pending(portal: BlockingPortal, workspace: Path, undecided: str) -> None:
    """Only a 2025-11-25 client keeps the call open meanwhile; a modern one comes back with the answer."""
    old = next(era for era, mode in ERAS.items() if mode == "legacy")
    with connected(portal, workspace, old, TIGON_REVIEW_SECONDS="0.5") as session:
        session.human = lambda question: ErrorData(code=INVALID_REQUEST, message="no dialogs here")
        assert session.works("request_review", task_id=undecided)["decision"] == "pending"
        session.asked.clear()
        session.silent = True
        answer = session.works("request_review", task_id=undecided)
        assert answer["decision"] == "pending"
        assert len(session.asked) == 1
        assert any("waiting for the human" in (message or "") for _, _, message in session.progress)
