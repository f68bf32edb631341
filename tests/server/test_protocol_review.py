"""The form that a human fills in, and what its content counts for."""

from __future__ import annotations

import pytest
from mcp.server.elicitation import render_elicitation_schema

from tigon.protocol.review import (
    WAIT_SECONDS,
    approval_of,
    form_for,
    message_of,
    read_form,
    wait_seconds,
)
from tigon.workflow.questions import ReviewQuestion

QUESTION = ReviewQuestion(kind="profile", hash="a1b2c3d4" + "0" * 56, title="Profile of mish", text="# mish")


def test_the_choice_that_approves_names_the_hash_and_is_not_the_first() -> None:
    schema = render_elicitation_schema(form_for(QUESTION))
    assert schema["required"] == ["decision"]
    assert schema["properties"]["decision"]["enum"] == ["not now", "send back", "approve a1b2c3d4"]
    assert all(field["type"] == "string" for field in schema["properties"].values())
    assert "default" not in schema["properties"]["decision"]


def test_the_question_shows_what_is_approved() -> None:
    message = message_of(QUESTION)
    assert QUESTION.title in message and QUESTION.text in message and QUESTION.hash in message


@pytest.mark.parametrize(
    ("content", "decision"),
    [
        ({"decision": "approve a1b2c3d4"}, "approved"),
        ({"decision": "send back"}, "rejected"),
        ({"decision": "not now"}, "pending"),
        ({"decision": "approve"}, "pending"),
        ({"decision": "approve a1b2c3d5"}, "pending"),
        ({"decision": "Approve a1b2c3d4"}, "pending"),
        ({"decision": True}, "pending"),
        ({"decision": ["approve a1b2c3d4"]}, "pending"),
        ({"approve": "approve a1b2c3d4"}, "pending"),
        ({}, "pending"),
        ("approve a1b2c3d4", "pending"),
        (None, "pending"),
    ],
)
def test_only_exact_values_decide(content: object, decision: str) -> None:
    said = read_form(form_for(QUESTION).model_validate(content), "here")
    assert (said.decision, said.hash, said.channel) == (decision, QUESTION.hash, "here")


def test_a_comment_is_carried_and_need_not_be_text() -> None:
    form = form_for(QUESTION)
    assert read_form(form.model_validate({"decision": "send back", "comment": " why "}), "").comment == "why"
    assert read_form(form.model_validate({"decision": "send back", "comment": 3}), "").comment == ""


def test_another_question_has_another_approval() -> None:
    other = ReviewQuestion(kind="profile", hash="b" * 64, title=QUESTION.title, text=QUESTION.text)
    said = read_form(form_for(other).model_validate({"decision": approval_of(QUESTION)}), "")
    assert said.decision == "pending"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("3", 3.0), ("0.5", 0.5), ("0", WAIT_SECONDS), ("-1", WAIT_SECONDS), ("", WAIT_SECONDS)],
)
def test_the_limit_on_waiting(monkeypatch: pytest.MonkeyPatch, text: str, seconds: float) -> None:
    monkeypatch.setenv("TIGON_REVIEW_SECONDS", text)
    assert wait_seconds() == seconds
