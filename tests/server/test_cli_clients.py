"""What `tigon doctor` reads in the files of clients."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tigon.cli.clients import client_checks


def test_a_folder_without_clients(tmp_path: Path) -> None:
    ((name, status, _, how),) = client_checks(tmp_path, home=tmp_path)
    assert (name, status) == ("client", "optional")
    assert "claude mcp add" in how


def test_clients_that_know_tigon(tmp_path: Path) -> None:
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"tigon": {"command": "tigon"}}}))
    (tmp_path / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": {"other": {}}}))
    ((_, status, detail, _),) = client_checks(tmp_path, home=tmp_path)
    assert status == "ok"
    assert "Claude Code" in detail and "Cursor" not in detail


@pytest.mark.parametrize("hook", ["Elicitation", "ElicitationResult"])
@pytest.mark.parametrize("name", ["settings.json", "settings.local.json"])
def test_a_hook_that_can_answer_for_the_human_is_named(tmp_path: Path, hook: str, name: str) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    for root in (project, home):
        (root / ".claude").mkdir(parents=True)
        (root / ".claude" / name).write_text(json.dumps({"hooks": {hook: [{"hooks": []}], "Stop": [{}]}}))
    warnings = [row for row in client_checks(project, home=home) if row[1] == "warning"]
    assert len(warnings) == 2
    assert str(project) in warnings[0][2] and str(home) in warnings[1][2] and hook in warnings[0][2]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"hooks": []}', '{"hooks": {"Elicitation": []}}'])
def test_settings_without_such_hooks_or_broken(tmp_path: Path, text: str) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text(text)
    assert [row[0] for row in client_checks(tmp_path, home=tmp_path / "none")] == ["client"]
