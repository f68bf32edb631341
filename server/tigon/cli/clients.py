"""What the files of MCP clients say that matters here: whether they know Tigon, and who answers their
dialogs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

Row = tuple[str, Literal["ok", "optional", "warning"], str, str]
"""Name, status, detail, how to get it."""

CONFIGURATIONS: tuple[tuple[str, str], ...] = (
    ("Claude Code", ".mcp.json"),
    ("Cursor", ".cursor/mcp.json"),
    ("VS Code", ".vscode/mcp.json"),
    ("Codex", ".codex/config.toml"),
    ("Gemini CLI", ".gemini/settings.json"),
)
"""Where each client keeps a project's servers."""

CLAUDE_SETTINGS = (".claude/settings.json", ".claude/settings.local.json")
ELICITATION_HOOKS = ("Elicitation", "ElicitationResult")
"""Hooks of Claude Code that may answer a dialog, or change an answer, before a human sees it."""


def client_checks(folder: Path, home: Path | None = None) -> Iterator[Row]:
    """One row for the configurations, and one for each hook that could answer a review."""
    knowing = [name for name, path in CONFIGURATIONS if "tigon" in _text(folder / path)]
    if knowing:
        yield "client", "ok", f"configured for {', '.join(knowing)}", ""
    else:
        how = "for Claude Code: claude mcp add --scope project tigon -- tigon serve"
        yield "client", "optional", "no client is configured in this folder", how
    for root in (folder, home or Path.home()):
        for name in CLAUDE_SETTINGS:
            for hook in _elicitation_hooks(root / name):
                detail = f"{root / name} has a hook on {hook}: it can approve a review without a human"
                yield "review", "warning", detail, "remove it, or review with `tigon review`"


def _elicitation_hooks(path: Path) -> list[str]:
    try:
        settings: Any = json.loads(_text(path) or "{}")
    except ValueError:
        return []
    hooks = settings.get("hooks") if isinstance(settings, dict) else None
    return [name for name in ELICITATION_HOOKS if isinstance(hooks, dict) and hooks.get(name)]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
