"""Make a workspace's own `liger_kernel` the one that is imported."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

from tigon_tools.gpus import hide_gpus
from tigon_tools.schema.errors import JobError


def workspace_root(workspace: str) -> Path:
    """The root of a workspace, resolved.

    Raises:
        JobError: "bad_request" where there is no `src/liger_kernel`.
    """
    root = Path(workspace).resolve()
    if not (root / "src" / "liger_kernel").is_dir():
        raise JobError(
            "bad_request",
            f"{root} has no src/liger_kernel.",
            "Give the root of a Liger checkout; `tigon init PATH` makes one.",
        )
    return root


def use_workspace(workspace: str, device: str) -> Path:
    """Put `src` and the root first on the path; repair the interpreter for a CPU. Returns the root.

    A `liger_kernel` that is imported already is forgotten, so that the next import is the workspace's.

    Raises:
        JobError: "bad_request" where there is no `src/liger_kernel`, or another copy comes first all the
            same; "unsupported" where Triton's interpreter cannot be repaired; "no_torch" without Triton.
    """
    root = workspace_root(workspace)
    source = root / "src"
    if device == "cpu":
        hide_gpus()
        _repair_interpreter()
    sys.dont_write_bytecode = True  # nothing is left in the author's checkout
    for name in [name for name in sys.modules if name.split(".")[0] == "liger_kernel"]:
        del sys.modules[name]
    sys.path[:] = [str(source), str(root), *(path for path in sys.path if path not in (str(source), str(root)))]
    importlib.invalidate_caches()
    found = importlib.util.find_spec("liger_kernel")
    origin = None if found is None else found.origin
    if origin is None or not is_inside(origin, source):
        raise JobError(
            "bad_request",
            f"liger_kernel is imported from {origin or 'nowhere'}, not from {source}.",
            "Add src/liger_kernel/__init__.py if it is gone; uninstall a liger-kernel that puts itself first.",
        )
    return root


def is_inside(filename: str, folder: Path) -> bool:
    """Whether a file, links resolved, is below a resolved folder."""
    return Path(filename).resolve().is_relative_to(folder)


def _repair_interpreter() -> None:
    from tigon_tools.interpreter import UnknownTriton, activate

    try:
        activate()
    except UnknownTriton as problem:
        raise JobError("unsupported", str(problem), "Run on a GPU, or install a Triton that is covered.") from None
    except ImportError as problem:
        raise JobError(
            "no_torch",
            f"{sys.executable} cannot import what Triton's interpreter needs: {problem}.",
            f"Install it there: {sys.executable} -m pip install torch triton numpy.",
        ) from None
