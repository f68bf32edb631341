"""What a client finds: tools, prompt, resources, skills. In both protocol eras, over stdio."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import MCPError
from mcp_types import Request, RequestParams, Result, TextContent, TextResourceContents
from pydantic import ConfigDict
from stdio_session import Session

ARGUMENTS = {
    "classify_tier": {"source", "entry", "inputs"},
    "get_reference": {"kernel", "tier", "part"},
    "emit_profile": {"workflow", "profile", "task_id"},
    "request_review": {"task_id"},
    "scaffold_kernel": {"task_id"},
    "run_verify": {"task_id", "device", "gates"},
    "task_status": {"task_id"},
    "finish_task": {"task_id"},
}
"""The contract. More optional arguments are welcome, none of these may go."""

TOKEN_BUDGET = 4_000
CHARACTERS_A_TOKEN = 4


def test_tools_are_those_of_the_contract(outside: Session) -> None:
    tools = {tool.name: tool for tool in outside.portal.call(outside.client.list_tools).tools}
    assert set(ARGUMENTS) <= set(tools)
    for name, arguments in ARGUMENTS.items():
        assert arguments <= set(tools[name].input_schema["properties"]), name
        assert set(tools[name].input_schema.get("required", [])) <= arguments, name


def test_schemas_are_cheap_and_plain(outside: Session) -> None:
    tools = outside.portal.call(outside.client.list_tools)
    text = json.dumps(tools.model_dump(mode="json", by_alias=True, exclude_none=True))
    assert len(text) / CHARACTERS_A_TOKEN < TOKEN_BUDGET
    for tool in tools.tools:
        assert tool.description and len(tool.description) <= 900, tool.name
        assert len(tool.name) <= 30
        assert tool.input_schema["type"] == "object"
        assert not {"anyOf", "oneOf", "allOf"} & set(tool.input_schema), "clients flatten unions at the root"


def test_all_four_hints_are_set(outside: Session) -> None:
    reads = set()
    for tool in outside.portal.call(outside.client.list_tools).tools:
        hints = tool.annotations
        assert hints is not None
        assert None not in (
            hints.read_only_hint,
            hints.destructive_hint,
            hints.idempotent_hint,
            hints.open_world_hint,
        ), tool.name
        if hints.read_only_hint:
            reads.add(tool.name)
    # Clients skip the confirmation of these: nothing that asks a human or writes may be among them.
    assert reads == {"classify_tier", "get_reference", "task_status"}


def test_no_tool_can_approve(outside: Session) -> None:
    for tool in outside.portal.call(outside.client.list_tools).tools:
        assert not {"decision", "approve", "approved"} & set(tool.input_schema["properties"]), tool.name


def test_instructions_fit(outside: Session) -> None:
    instructions = outside.client.instructions
    assert instructions and len(instructions) <= 1_500
    assert "task_status" in instructions


def test_prompt_holds_skill_and_wish(outside: Session) -> None:
    (prompt,) = outside.portal.call(outside.client.list_prompts).prompts
    assert prompt.name == "liger-kernel-dev"
    assert [(a.name, a.required) for a in prompt.arguments or []] == [
        ("operation", True),
        ("source", False),
        ("task_id", False),
    ]
    arguments = {"operation": "x * tanh(softplus(x))", "source": "mish.py:mish"}
    (message,) = outside.portal.call(outside.client.get_prompt, "liger-kernel-dev", arguments).messages
    assert isinstance(message.content, TextContent)
    text = message.content.text
    assert "x * tanh(softplus(x))" in text and "mish.py:mish" in text
    # The stages, in their order, and no front matter.
    assert text.index("# Understand") < text.index("# Act") < text.index("# Verify")
    assert "description:" not in text


class SkillsList(Request[RequestParams, str]):
    method: str = "skills/list"
    params: RequestParams = RequestParams()


class GetParams(RequestParams):
    uri: str


class SkillsGet(Request[GetParams, str]):
    method: str = "skills/get"
    params: GetParams


class Anything(Result):
    model_config = ConfigDict(extra="allow")

    @property
    def fields(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


@pytest.fixture
def skills(outside: Session) -> Iterator[list[dict[str, Any]]]:
    yield outside.portal.call(outside.client.session.send_request, SkillsList(), Anything).fields["skills"]


def test_digests_and_sizes_are_those_of_what_is_read(outside: Session, skills: list[dict[str, Any]]) -> None:
    (skill,) = skills
    assert skill["uri"] == "skill://liger-kernel-dev/SKILL.md"
    assert skill["frontmatter"]["name"] == "liger-kernel-dev"
    assert skill["resources"][0]["uri"] == skill["uri"]
    assert len(skill["resources"]) == 4
    for entry in skill["resources"]:
        (content,) = outside.portal.call(outside.client.read_resource, entry["uri"]).contents
        assert isinstance(content, TextResourceContents)
        raw = content.text.encode()
        assert entry["digest"] == f"sha256:{hashlib.sha256(raw).hexdigest()}"
        assert entry["size"] == len(raw)


def test_get_gives_the_same_skill(outside: Session, skills: list[dict[str, Any]]) -> None:
    request = SkillsGet(params=GetParams(uri=skills[0]["uri"]))
    got = outside.portal.call(outside.client.session.send_request, request, Anything).fields
    assert got["skill"] == skills[0]


def test_unknown_skill_is_said(outside: Session) -> None:
    request = SkillsGet(params=GetParams(uri="skill://nothing/SKILL.md"))
    with pytest.raises(MCPError, match="there is no skill skill://nothing/"):
        outside.portal.call(outside.client.session.send_request, request, Anything)


def test_resources_and_templates(outside: Session) -> None:
    uris = {str(r.uri) for r in outside.portal.call(outside.client.list_resources).resources}
    assert {"liger://index", "skill://liger-kernel-dev/SKILL.md"} <= uris
    templates = outside.portal.call(outside.client.list_resource_templates).resource_templates
    assert {t.uri_template for t in templates} == {
        "tigon://tasks/{task_id}/profile",
        "tigon://tasks/{task_id}/report",
    }


@pytest.mark.parametrize("task_id", ["none", "..%2F..%2Fetc", "a.b"])
def test_no_resource_outside_the_tasks(outside: Session, task_id: str) -> None:
    with pytest.raises(MCPError):
        outside.portal.call(outside.client.read_resource, f"tigon://tasks/{task_id}/profile")
