"""`tigon doctor` where things work and where they do not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest


def doctor(folder: Path, **environment: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "tigon", "doctor", "--json"],
        cwd=folder,
        env={**os.environ, "HOME": str(folder), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, json.loads(done.stdout)


def named(answer: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [check for check in answer["checks"] if check["name"] == name]


def test_what_is_installed_is_found(tmp_path: Path) -> None:
    status, answer = doctor(tmp_path)
    assert status == 0 and answer["ok"]
    for package in ("torch", "triton", "numpy", "transformers"):
        (check,) = named(answer, package)
        assert check["status"] == "ok"
        assert check["detail"].startswith(version(package).partition("+")[0])
    assert answer["machine"]["executable"] == sys.executable
    (workspace,) = named(answer, "workspace")
    assert workspace["status"] == "optional" and "tigon init" in workspace["how"]


def test_a_workspace_is_seen(pristine_liger: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tigon", "doctor", "--workspace", str(pristine_liger)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout
    assert "workspace" in done.stdout and "tigon init" not in done.stdout


@pytest.mark.parametrize("python", ["/nonexistent/python", "/bin/false", "/bin/cat"])
def test_a_broken_interpreter_is_reported_beside_the_rest(tmp_path: Path, python: str) -> None:
    status, answer = doctor(tmp_path, TIGON_PYTHON=python)
    assert status == 1 and not answer["ok"] and answer["machine"] is None
    (check,) = named(answer, "job interpreter")
    assert check["status"] == "missing" and "TIGON_PYTHON" in check["how"]
    assert python in check["detail"]
    assert named(answer, "tigon") and named(answer, "ncu") and named(answer, "client")


def test_an_interpreter_without_torch_says_how_to_get_it(tmp_path: Path) -> None:
    """The system's own Python, or one without site packages: `tigon_tools` itself needs nothing else."""
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    status, answer = doctor(tmp_path, TIGON_PYTHON=str(bare))
    assert status == 1
    missing = [check for check in answer["checks"] if check["status"] == "missing"]
    assert any("torch" in check["detail"] + check["name"] for check in missing)
    assert all(check["how"] for check in missing)


def test_hooks_that_answer_reviews_are_named(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    settings = {"hooks": {"Elicitation": [{"hooks": [{"type": "command", "command": "yes"}]}]}}
    (tmp_path / ".claude" / "settings.local.json").write_text(json.dumps(settings))
    _, answer = doctor(tmp_path, TIGON_PYTHON="/nonexistent/python")
    (check, *_) = named(answer, "review")
    assert check["status"] == "warning" and "settings.local.json" in check["detail"]
