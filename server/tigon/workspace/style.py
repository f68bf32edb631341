"""The workspace's own style: its ruff settings, on the files of a task. Checks change nothing."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class CannotFormat(Exception):
    """ruff is missing, or a text is not valid Python."""


def format_source(text: str, path: str, root: Path) -> str:
    """A new file's text, formatted as the workspace has it: imports sorted, and none that is not used.

    A reference may import what only its `example_inputs` needs.

    Raises:
        CannotFormat: the text is not valid Python; says where.
    """
    fixed = _ruff(["check", "--select", "I,F401", "--fix-only", "--quiet", "--stdin-filename", path, "-"], root, text)
    formatted = _ruff(["format", "--quiet", "--stdin-filename", path, "-"], root, fixed.stdout)
    if formatted.returncode != 0:
        raise CannotFormat(f"{path} cannot be formatted: {formatted.stderr.strip()}")
    return formatted.stdout


def check_style(paths: Sequence[str], root: Path, before: Mapping[str, str | None]) -> list[str]:
    """What ruff finds in files of the workspace and did not find before: `path:line: rule message`.

    before: the text of a file before the task touched it. Another version of ruff than Liger's may
    dislike what was there already; that is not the task's to mend.
    """
    problems: list[str] = []
    for path in paths:
        if not (root / path).is_file():
            continue
        old = before.get(path)
        known = Counter(_rule(entry) for entry in _lint(path, root, old)) if old is not None else Counter()
        for entry in _lint(path, root, (root / path).read_text(encoding="utf-8")):
            known[_rule(entry)] -= 1
            if known[_rule(entry)] < 0:
                problems.append(f"{path}:{entry['location']['row']}: {' '.join(_rule(entry))}")
        if not _is_formatted(path, root, (root / path).read_text(encoding="utf-8")) and (
            old is None or _is_formatted(path, root, old)
        ):
            problems.append(f"{path}: not formatted; run `ruff format {path}`")
    return problems


def _lint(path: str, root: Path, text: str) -> list[dict[str, Any]]:
    checked = _ruff(["check", "--output-format", "json", "--quiet", "--stdin-filename", path, "-"], root, text)
    if checked.returncode not in (0, 1):
        raise CannotFormat(f"ruff could not check {path}: {checked.stderr.strip()}")
    return list(json.loads(checked.stdout or "[]"))


def _rule(entry: dict[str, Any]) -> tuple[str, str]:
    return entry["code"] or "syntax", entry["message"]


def _is_formatted(path: str, root: Path, text: str) -> bool:
    return _ruff(["format", "--check", "--quiet", "--stdin-filename", path, "-"], root, text).returncode == 0


def _ruff(arguments: list[str], root: Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
    from ruff import find_ruff_bin  # type: ignore[import-untyped]  # a dependency; imported late, as the server's start does not need it

    try:
        command = [find_ruff_bin(), arguments[0], "--no-cache", *arguments[1:]]
    except FileNotFoundError:
        raise CannotFormat("ruff is not installed beside Tigon: pip install ruff.") from None
    return subprocess.run(command, cwd=root, input=text, capture_output=True, text=True, timeout=60)
