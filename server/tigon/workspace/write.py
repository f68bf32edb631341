"""Write a plan: all of it or nothing, and never over what a human has edited.

Each file is written beside its place and renamed, so no file is ever half written. If one cannot be
written, those already renamed get their former text back. A kill between two renames leaves some
files new and some old; running the same plan again completes it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Action = Literal["created", "edited", "unchanged", "kept"]


class CannotWrite(Exception):
    """Nothing was written; the text names the file and what to do."""


@dataclass(frozen=True)
class PlannedFile:
    """path: relative to the workspace, with slashes. text: the whole new content.

    edit: the file exists and belongs to Liger; else the file is the task's own.
    optional: where somebody else's file is there already, it is kept, not an error (Liger's own
    test of a kernel is a better judge than ours).
    """

    path: str
    text: str
    edit: bool = False
    complete: bool = True
    optional: bool = False


def digest(text: str) -> str:
    """Of a file's text, as compared with what was scaffolded."""
    return hashlib.sha256(text.encode()).hexdigest()


def apply_plan(
    root: Path, plan: Sequence[PlannedFile], scaffolded: Mapping[str, str] | None = None
) -> list[tuple[PlannedFile, Action]]:
    """Write what differs.

    scaffolded: path to `digest` of what was written last time; a file that is neither that nor the
        new text was edited by a human and is kept.

    Raises:
        CannotWrite: a file to create is there and was never scaffolded, a path leaves the
            workspace, or the disk refuses.
    """
    try:
        decided = [(file, _decide(root, file, scaffolded or {})) for file in plan]
    except (OSError, UnicodeDecodeError) as problem:
        raise CannotWrite(f"a file of the plan cannot be read: {problem}. Nothing was changed.") from problem
    written: list[tuple[Path, str | None]] = []
    try:
        for file, action in decided:
            if action in ("created", "edited"):
                path = root / file.path
                before = _read(path)
                replace_file(path, file.text)
                written.append((path, before))
    except OSError as problem:
        for path, before in reversed(written):
            with contextlib.suppress(OSError):
                path.unlink() if before is None else replace_file(path, before)
        raise CannotWrite(
            f"{problem.filename or 'a file'} cannot be written: {problem.strerror}. Nothing was changed."
        ) from problem
    return decided


def _decide(root: Path, file: PlannedFile, scaffolded: Mapping[str, str]) -> Action:
    path = root / file.path
    if not path.resolve().is_relative_to(root.resolve()):
        raise CannotWrite(f"{file.path} leads out of the workspace (a symbolic link). Nothing was changed.")
    current = _read(path)
    if current == file.text:
        return "unchanged"
    if file.edit:
        return "edited"
    if current is None:
        return "created"
    if file.path in scaffolded:
        return "created" if digest(current) == scaffolded[file.path] else "kept"
    if file.optional:
        return "kept"
    raise CannotWrite(
        f"{file.path} is there and was not written by this task. Nothing was changed; "
        f"rename the operation, or remove the file if it is not needed."
    )


def _read(path: Path) -> str | None:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None


def replace_file(path: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all, and survives a power cut."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode if path.exists() else 0o644
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tigon")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode & 0o7777)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
