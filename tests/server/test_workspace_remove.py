"""Removing a kernel takes out its own lines and nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tigon.workspace.layout import KernelPaths
from tigon.workspace.remove import remove_kernel


def git(root: Path, *arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_only_lines_of_the_kernel_go_and_its_test_stays(without_relu_squared: Path) -> None:
    diff = git(without_relu_squared, "diff", "--unified=0", "--", "src/liger_kernel/*/__init__.py", "*/functional.py")
    lines = [line for line in diff if line[:1] in "+-" and not line.startswith(("+++", "---"))]
    assert all(line.startswith("-") for line in lines)
    assert all("relu_squared" in line or "ReLUSquared" in line for line in lines if line[1:].strip())
    # Three exports of the ops, one of the module with its entry, the functional's import and two lines.
    assert len([line for line in lines if line[1:].strip()]) == 3 + 2 + 3
    paths = KernelPaths.of("relu_squared")
    deleted = git(without_relu_squared, "diff", "--name-only", "--diff-filter=D")
    assert sorted(deleted) == sorted([paths.ops, paths.module, paths.benchmark])
    assert (without_relu_squared / paths.test).is_file()


def test_a_kernel_that_is_not_there_changes_nothing(without_relu_squared: Path) -> None:
    before = git(without_relu_squared, "status", "--porcelain")
    assert remove_kernel(without_relu_squared, "relu_squared") == []
    assert git(without_relu_squared, "status", "--porcelain") == before
