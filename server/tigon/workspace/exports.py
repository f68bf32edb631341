"""Add a kernel to Liger's existing files, each entry at its alphabetical place.

Pure functions from text to text. Doing it twice changes nothing; every line that was there stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tigon.workspace.layout import FUNCTIONAL, OPS_INIT, TRANSFORMERS_INIT
from tigon.workspace.syntax_edit import CannotEdit, Import, SourceFile

UNUSED = "  # noqa: F401"
"""Liger marks each re-export so; ruff would take it for an unused import."""


def add_ops_exports(text: str, operation_name: str, names: Sequence[str]) -> str:
    """`from liger_kernel.ops.<operation> import <name>` in `ops/__init__.py`."""
    module = f"liger_kernel.ops.{operation_name}"
    for name in names:
        text = _add_import(text, OPS_INIT, module, name, UNUSED, lambda i: i.module.startswith("liger_kernel.ops."))
    return text


def add_module_export(text: str, operation_name: str, class_name: str) -> str:
    """The module class in `transformers/__init__.py`: the import, and its entry in `__all__`."""
    module = f"liger_kernel.transformers.{operation_name}"

    def always_safe(entry: Import) -> bool:
        return entry.top_level and entry.module.startswith("liger_kernel.transformers.")

    text = _add_import(text, TRANSFORMERS_INIT, module, class_name, UNUSED, always_safe)
    return _add_to_all(text, class_name)


def add_functional(text: str, function_class: str, functional_name: str, signature: str, call: str) -> str:
    """The function in `functional.py`, and the import of what it applies.

    signature: arguments as they stand in `def` ("a, b, alpha: float = 1.0"); call: as passed on.
    A plain entry for the same Function is renewed, since a revised profile may have other arguments.

    Raises:
        CannotEdit: another function has that name, or this one has been added to.
    """
    text = _add_import(
        text, FUNCTIONAL, "liger_kernel.ops", function_class, "", lambda i: i.module == "liger_kernel.ops"
    )
    file = SourceFile(text, FUNCTIONAL)
    existing = {d.name: d for d in file.definitions()}
    body = [
        *_wrapped(f"def {functional_name}(", signature, "):", ""),
        *_wrapped(f"return {function_class}.apply(", call, ")", "    "),
    ]
    if functional_name not in existing:
        _insert_function(file, functional_name, body)
        return file.text
    known = existing[functional_name]
    lines = [line.rstrip("\r\n") for line in file.lines[known.first : known.last + 1]]
    if lines == body:
        return text
    if not _is_plain_entry(lines, functional_name, function_class):
        raise CannotEdit(
            f"{FUNCTIONAL} has another {functional_name} (line {known.first + 1}). "
            f"Rename the operation, or remove that function to have it written again."
        )
    del file.lines[known.first : known.last + 1]
    file.insert(known.first, body)
    return file.text


def _wrapped(opening: str, arguments: str, closing: str, indent: str) -> list[str]:
    """On one line, else the arguments on a line of their own, else one a line: as ruff breaks it."""
    whole = f"{indent}{opening}{arguments}{closing}"
    if len(whole) <= LINE_LENGTH:
        return [whole]
    inner = f"{indent}    "
    if len(inner + arguments) <= LINE_LENGTH:
        return [indent + opening, inner + arguments, indent + closing]
    return [indent + opening, *(f"{inner}{a}," for a in arguments.split(", ")), indent + closing]


def _is_plain_entry(lines: list[str], functional_name: str, function_class: str) -> bool:
    """A `def` that does nothing but apply `function_class`: as written here, whatever its arguments."""
    joined = " ".join(line.strip() for line in lines)
    return (
        re.fullmatch(rf"def {functional_name}\([^#]*\): return {function_class}\.apply\([^()#]*\)", joined) is not None
    )


LINE_LENGTH = 120
"""Liger's, in its ruff settings."""


def _insert_function(file: SourceFile, name: str, body: list[str]) -> None:
    functions = [d for d in file.definitions() if d.name.startswith("liger_")]
    position = alphabetical_place([d.name for d in functions], name)
    if position < len(functions):
        file.insert(functions[position].first, [*body, "", ""])
        return
    end = len(file.lines)
    while end > 0 and not file.lines[end - 1].strip():
        end -= 1
    file.insert(end, ["", "", *body])


def alphabetical_place(names: Sequence[str], new: str) -> int:
    """Before which of `names` a new one goes, where they are alphabetical in stretches only.

    Liger's lists are. Of the neighbours that it fits between, the pair whose first is nearest wins;
    if it fits nowhere, it goes last.
    """
    low = [name.lower() for name in names]
    key = new.lower()
    fitting = [i for i in range(1, len(low)) if low[i - 1] < key < low[i]]
    if fitting:
        return max(fitting, key=lambda i: low[i - 1])
    return 0 if low and key < low[0] else len(low)


_Natural = tuple[tuple[int, int, str], ...]


def _sort_key(module: str, name: str) -> tuple[_Natural, int, _Natural]:
    """isort's order with one import a line: by module, then CONSTANTS, Classes, functions; `llama4` before `llama10`."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return _natural(module), kind, _natural(name)


def _natural(text: str) -> _Natural:
    """Digits compare as numbers, and before letters."""
    parts = re.findall(r"\d+|\D", text.lower())
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)


def _add_import(text: str, path: str, module: str, name: str, suffix: str, belongs: Callable[[Import], bool]) -> str:
    file = SourceFile(text, path)
    imports = [entry for entry in file.imports() if belongs(entry)]
    if not imports:
        raise CannotEdit(f"{path} imports nothing of the kind of {module}.")
    for entry in file.imports():
        if entry.name == name and entry.top_level:
            if entry.module == module:
                return text
            raise CannotEdit(f"{path} imports another {name}, from {entry.module}.")
    key = _sort_key(module, name)
    following = next((e for e in imports if _sort_key(e.module, e.name) > key), None)
    place = following.first if following is not None else imports[-1].last + 1
    line = f"from {module} import {name}"
    # ruff measures a line without its `noqa`; a longer one is broken as Liger has it.
    new = [line + suffix] if len(line) <= LINE_LENGTH else [f"from {module} import (", f"    {name},{suffix}", ")"]
    file.insert(place, new)
    return file.text


def _add_to_all(text: str, class_name: str) -> str:
    file = SourceFile(text, TRANSFORMERS_INIT)
    entries = file.string_list("__all__")
    if class_name in (name for name, _ in entries):
        return text
    position = alphabetical_place([name for name, _ in entries], class_name)
    place = entries[position][1] if position < len(entries) else entries[-1][1] + 1
    file.insert(place, [f'    "{class_name}",'])
    return file.text
