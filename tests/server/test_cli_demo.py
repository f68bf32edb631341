"""`tigon demo` as a newcomer runs it, but not on a terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_demo_passes_and_names_its_reports_last(tmp_path: Path) -> None:
    root = tmp_path / "liger"
    shown = subprocess.run(
        [sys.executable, "-m", "tigon", "demo", "--workspace", str(root)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert shown.returncode == 0, shown.stdout[-3000:] + shown.stderr[-3000:]
    assert shown.stdout.count("refused, as it should be") == 2
    assert "test/transformers/test_relu_squared.py" in shown.stdout
    reports = [Path(line) for line in shown.stdout.splitlines()[-2:]]
    assert all(report.is_file() and report.is_relative_to(root) for report in reports)
    assert "\x1b[" not in shown.stdout, "no colours where nobody sees them"


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    shown = subprocess.run(
        [sys.executable, "-m", "tigon", "demo", "--workspace", str(tmp_path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert shown.returncode == 1
    assert "Traceback" not in shown.stdout + shown.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
