"""What has changed in the workspace: the files of a task by hash, and what no task was to touch."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping

from tigon.workspace.layout import Workspace
from tigon.workspace.plan import planned_paths
from tigon.workspace.snapshot import compare, take_snapshot


def files_hash(workspace: Workspace, operation_name: str) -> str:
    """Of the planned files as they are on disk."""
    lines = []
    for path in planned_paths(operation_name):
        file = workspace.root / path
        lines.append(f"{path} {hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else 'absent'}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def foreign_changes(
    workspace: Workspace, operation_name: str, snapshot: Mapping[str, str], of_other_tasks: Collection[str]
) -> list[str]:
    """Paths that differ from the snapshot and that neither this task nor another was to write.

    snapshot: path to hash, from before the task's first write.
    """
    allowed = {*planned_paths(operation_name), *of_other_tasks}
    return [path for path in compare(snapshot, take_snapshot(workspace.root)).all if path not in allowed]


def missing_files(workspace: Workspace, operation_name: str) -> list[str]:
    """Planned files that are not there."""
    return [path for path in planned_paths(operation_name) if not (workspace.root / path).is_file()]
