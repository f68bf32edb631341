"""Job `import`: what was scaffolded can be imported, by the names others will use."""

from __future__ import annotations

import importlib
import traceback
from pathlib import Path

from tigon_tools.gates.workspace_path import is_inside, use_workspace
from tigon_tools.jobs import Progress
from tigon_tools.schema.gates import ImportRequest, ImportResult


def run(request: ImportRequest, progress: Progress | None = None) -> ImportResult:
    """Import each name from the workspace.

    Raises:
        JobError: "bad_request" where the workspace is none; see `use_workspace`.
    """
    root = use_workspace(request.workspace, request.device)
    problems: list[str] = []
    for number, name in enumerate(request.names):
        if progress is not None:
            progress(f"importing {name}", number / len(request.names))
        problem = _problem(name, root)
        if problem is not None and problem not in problems:
            problems.append(problem)
    return ImportResult(not problems, tuple(problems))


def _problem(name: str, root: Path) -> str | None:
    """What is wrong with "module:attribute", in a sentence; None where nothing is."""
    module, _, attribute = name.partition(":")
    if not module or module.startswith("."):
        return f"{name!r} is not of the form package.module:name."
    try:
        imported = importlib.import_module(module)
        file = getattr(imported, "__file__", None)
        if module.split(".")[0] == "liger_kernel" and (file is None or not is_inside(file, root / "src")):
            return f"{module} is imported from {file or 'a folder without __init__.py'}, not from the workspace."
        missing = bool(attribute) and not hasattr(imported, attribute)
    except BaseException as problem:  # a module that calls sys.exit() fails the gate, not the job
        return f"{module} cannot be imported: {_explained(problem, root)}"
    if not missing:
        return None
    where = f" ({_relative(file, root)}:1)" if file else ""
    return f"{module} has no {attribute}{where}; define it there, or export it."


def _explained(problem: BaseException, root: Path) -> str:
    """The error, and the innermost line of the workspace that it came from."""
    text = f"{type(problem).__name__}: {' '.join(str(problem).split())}".removesuffix(": ")
    if isinstance(problem, SyntaxError) and problem.filename:
        text = f"{type(problem).__name__}: {problem.msg}"
        return f"{text} ({_relative(problem.filename, root)}:{problem.lineno})."
    for frame in reversed(traceback.extract_tb(problem.__traceback__)):
        if is_inside(frame.filename, root) and Path(frame.filename).is_file():
            return f"{text} ({_relative(frame.filename, root)}:{frame.lineno})."
    return f"{text}."


def _relative(filename: str, root: Path) -> str:
    path = Path(filename).resolve()
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
