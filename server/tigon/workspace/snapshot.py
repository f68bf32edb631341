"""What is in a workspace, by hash: the integrity gate compares it with what was there at the scaffold."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_SKIPPED_FOLDERS = frozenset(
    ".git .tigon .hg __pycache__ .pytest_cache .ruff_cache .mypy_cache .hypothesis .venv venv node_modules build "
    "dist .idea .vscode .claude .cursor .ipynb_checkpoints .eggs site".split()
)
_SKIPPED_SUFFIXES = (".pyc", ".pyo", ".tigon", ".swp", "~")


@dataclass(frozen=True)
class Changes:
    """Paths relative to the workspace, sorted."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        return tuple(sorted((*self.added, *self.changed, *self.removed)))


def take_snapshot(root: Path) -> dict[str, str]:
    """Path to SHA-256 of every file that could be part of a contribution."""
    return {path: _hash(root / path) for path in _files(root)}


def compare(before: Mapping[str, str], after: Mapping[str, str]) -> Changes:
    """What differs between two snapshots."""
    return Changes(
        tuple(sorted(set(after) - set(before))),
        tuple(sorted(path for path in set(before) & set(after) if before[path] != after[path])),
        tuple(sorted(set(before) - set(after))),
    )


def _files(root: Path) -> Iterator[str]:
    for folder, names, files in os.walk(root):
        names[:] = sorted(n for n in names if n not in _SKIPPED_FOLDERS and not n.endswith(".egg-info"))
        for name in files:
            if not name.endswith(_SKIPPED_SUFFIXES):
                yield Path(folder, name).relative_to(root).as_posix()


def _hash(path: Path) -> str:
    if path.is_symlink():
        return "link:" + os.readlink(path)
    return hashlib.sha256(path.read_bytes()).hexdigest()
