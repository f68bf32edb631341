"""What has changed in the workspace: the files of a task by hash, and what no task was to touch."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence

from tigon.workspace.layout import Workspace
from tigon.workspace.own_parts import SHARED, own_digest, without_parts
from tigon.workspace.plan import planned_paths
from tigon.workspace.render import KernelNames
from tigon.workspace.snapshot import compare, take_snapshot
from tigon.workspace.syntax_edit import CannotEdit


def own_digests(workspace: Workspace, names: KernelNames) -> dict[str, str]:
    """Each planned path with the digest of the operation's part of it, as it is on disk."""
    return {
        path: own_digest(path, workspace.read(path), names) if workspace.exists(path) else "absent"
        for path in planned_paths(names.operation_name)
    }


def files_hash(digests: Mapping[str, str]) -> str:
    """One hash of all of them: what a pass, and a human's last word, is for."""
    lines = [f"{path} {own}" for path, own in digests.items()]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def foreign_changes(
    workspace: Workspace,
    names: KernelNames,
    snapshot: Mapping[str, str],
    originals: Mapping[str, str | None],
    of_other_tasks: Collection[str],
    others: Sequence[KernelNames],
) -> list[str]:
    """Paths that differ from before the task's first write in what neither this task nor another was to write.

    snapshot: path to hash. originals: path to text, of the planned files. of_other_tasks, others: files that
        other tasks wrote, and their names.
    """
    allowed = {*planned_paths(names.operation_name), *of_other_tasks}
    foreign = [path for path in compare(snapshot, take_snapshot(workspace.root)).all if path not in allowed]
    for path in SHARED:
        before = originals.get(path)
        if before is not None and workspace.exists(path) and _differs(path, before, workspace, (names, *others)):
            foreign.append(f"{path} (beside the task's own entries)")
    return foreign


def _differs(path: str, before: str, workspace: Workspace, operations: Sequence[KernelNames]) -> bool:
    try:
        was = without_parts(path, before, operations)
        return without_parts(path, workspace.read(path), operations) != was
    except CannotEdit:
        return False  # not valid Python: the import gate says so


def missing_files(workspace: Workspace, operation_name: str) -> list[str]:
    """Planned files that are not there."""
    return [path for path in planned_paths(operation_name) if not (workspace.root / path).is_file()]
