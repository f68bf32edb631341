"""Job `resolve`: a path, a dotted name or code becomes a `Reference` with its text frozen."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
from pathlib import Path

from tigon_tools.schema.errors import JobError
from tigon_tools.schema.reference import Reference, ResolveRequest, ResolveResult
from tigon_tools.trace import source

_PATH = re.compile(r"^(?P<path>[^\n:]+\.py)(?::(?P<name>\w+))?$")
_DOTTED = re.compile(r"^(?P<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?P<name>[A-Za-z_]\w*)$")


def run(request: ResolveRequest, progress: object = None) -> ResolveResult:
    """Find the text.

    Raises:
        JobError: "bad_reference" where the file, module or entry does not exist, the code does not
            parse, or it imports more than torch.
    """
    named = request.source.strip()
    path = _PATH.match(named)
    if path:
        return ResolveResult(_from_path(path["path"], path["name"] or request.entry, request))
    dotted = _DOTTED.match(named)
    if dotted:
        return ResolveResult(_from_module(dotted["module"], dotted["name"], request))
    if "\n" not in named and not re.search(r"\b(def|class|lambda)\b", named):
        raise JobError(
            "bad_reference",
            f"{named[:80]!r} is neither a path `file.py:name`, nor `package.module:name`, nor Python code.",
            "Give one of the three; code has to define a function or an nn.Module.",
        )
    return ResolveResult(_from_code(request.source, request.entry, "the snippet", "snippet", request))


def _from_code(code: str, entry: str | None, called: str, origin: str, request: ResolveRequest) -> Reference:
    tree = source.parse(code, called)
    source.check_imports(tree, called)
    return Reference(code, source.choose_entry(tree, entry, called), origin, None, request.inputs)


def _from_path(path: str, entry: str | None, request: ResolveRequest) -> Reference:
    file = Path(request.root, path).expanduser()
    try:
        code = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise JobError(
            "bad_reference",
            f"{path} cannot be read: {getattr(problem, 'strerror', None) or problem}.",
            f"Give a path that exists, relative to {request.root}.",
        ) from None
    reference = _from_code(code, entry, path, path, request)
    return Reference(code, reference.entry, f"{path}:{reference.entry}", None, request.inputs)


def _from_module(module: str, entry: str, request: ResolveRequest) -> Reference:
    """The module's whole text; it is executed under its own name, so relative imports work."""
    if request.root not in sys.path:
        sys.path.insert(0, request.root)
    try:
        found = importlib.import_module(module)
    except Exception as problem:
        raise JobError(
            "bad_reference",
            f"{module!r} cannot be imported: {type(problem).__name__}: {problem}.",
            "Name a module that the interpreter with torch can import, or give the code itself.",
        ) from None
    if not hasattr(found, entry):
        raise JobError("bad_reference", f"{module!r} has no {entry!r}.", "Name a function or an nn.Module of it.")
    try:
        code = inspect.getsource(found)
    except (OSError, TypeError):
        raise JobError(
            "bad_reference", f"{module!r} has no Python source.", "Write the operation out as Python code."
        ) from None
    return Reference(code, entry, f"{module}:{entry}", module, request.inputs)
