"""Which lines of a file belong to an operation: of its own files all, of the shared ones its entries alone.

Several tasks write in Liger's three export files. What is approved, hashed and counted is a task's own part,
so that one task's entries change nothing for another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tigon.workspace.layout import FUNCTIONAL, OPS_INIT, TRANSFORMERS_INIT
from tigon.workspace.render import KernelNames
from tigon.workspace.syntax_edit import CannotEdit, SourceFile
from tigon.workspace.write import digest

SHARED = (OPS_INIT, TRANSFORMERS_INIT, FUNCTIONAL)
"""Files of Liger that every kernel has entries in."""


def own_part(path: str, text: str, names: KernelNames) -> str:
    """The operation's lines; of a shared file that is not valid Python all of it."""
    if path not in SHARED:
        return text
    try:
        file = SourceFile(text, path)
        lines = _own_lines(file, path, names)
    except CannotEdit:
        return text
    return "".join(file.lines[line] for line in sorted(lines))


def own_digest(path: str, text: str, names: KernelNames) -> str:
    return digest(own_part(path, text, names))


def without_parts(path: str, text: str, operations: Iterable[KernelNames]) -> list[str]:
    """Lines of a shared file that belong to none of the operations; blank ones aside.

    Raises:
        CannotEdit: the file is not valid Python.
    """
    file = SourceFile(text, path)
    own = set().union(*(_own_lines(file, path, names) for names in operations))
    return [line.rstrip() for number, line in enumerate(file.lines) if number not in own and line.strip()]


def owner_of_line(path: str, text: str, line: int, operations: Mapping[str, KernelNames]) -> str | None:
    """The key of the operation that a line of a shared file belongs to; None where it is nobody's.

    line: 1-based, as Python counts.
    """
    try:
        file = SourceFile(text, path)
        return next((key for key, names in operations.items() if line - 1 in _own_lines(file, path, names)), None)
    except CannotEdit:
        return None


def _own_lines(file: SourceFile, path: str, names: KernelNames) -> set[int]:
    spans = [(i.first, i.last) for i in file.imports() if _is_own_import(path, i.module, i.name, names)]
    if path == FUNCTIONAL:
        spans += [(d.first, d.last) for d in file.definitions() if d.name == names.functional_name]
    if path == TRANSFORMERS_INIT:
        spans += [(line, line) for name, line in file.string_list("__all__") if name == names.module_class]
    return {line for first, last in spans for line in range(first, last + 1)}


def _is_own_import(path: str, module: str, name: str, names: KernelNames) -> bool:
    if path == FUNCTIONAL:
        return module == "liger_kernel.ops" and name == names.function_class
    package = "ops" if path == OPS_INIT else "transformers"
    return module == f"liger_kernel.{package}.{names.operation_name}"
