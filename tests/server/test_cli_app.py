"""How commands fail: one sentence, the next step, status 1 or 2, and no traceback. As people run them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tigon import __version__


def tigon(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tigon", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_help_names_every_command(tmp_path: Path) -> None:
    shown = tigon("--help", folder=tmp_path)
    assert shown.returncode == 0
    for command in ("serve", "init", "demo", "doctor", "review", "tasks", "report"):
        assert f" {command} " in shown.stdout, command


def test_version(tmp_path: Path) -> None:
    assert tigon("--version", folder=tmp_path).stdout == f"tigon {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["nonsense"], 2, "nonsense"),
        (["report"], 2, "'task'"),
        (["tasks", "--nonsense"], 2, "--nonsense"),
        (["tasks"], 1, "not a Liger checkout"),
        (["report", "t"], 1, "not a Liger checkout"),
        (["review"], 1, "not a Liger checkout"),
        (["init", "."], 1, "exists and is not empty"),
    ],
)
def test_errors_are_a_sentence_and_a_next_step(tmp_path: Path, arguments: list[str], status: int, says: str) -> None:
    (tmp_path / "full.txt").write_text("a folder in use")
    failed = tigon(*arguments, folder=tmp_path)
    assert failed.returncode == status, failed.stderr
    assert failed.stdout == ""
    assert failed.stderr.startswith("tigon: ")
    assert says in failed.stderr
    assert "Traceback" not in failed.stderr
    assert len(failed.stderr.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full.txt"]
