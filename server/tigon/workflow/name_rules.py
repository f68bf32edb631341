"""What a kernel may be called: its names are Python's, in Liger's form, and nobody else's in the workspace.

A name that will not do is refused before anything is traced, and opens no task.
"""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tigon.workflow import naming
from tigon.workflow.kernel_profile import KernelProfile
from tigon.workspace.layout import KernelPaths, Workspace

_PREFIXES = {"function_class_name": "Liger", "module_class_name": "Liger", "functional_name": "liger_"}
"""How Liger's public names begin (the table of names in its kernel profile format)."""

_MODULES = frozenset({"torch", "triton", "tl", "libdevice", "transformers", "numpy", "math", "functools", "operator"})
"""What Liger's kernel files import and call by these names."""

LONGEST_NAME = 60
"""Characters of an operation's name: file systems and readers have limits; Liger's longest has 33."""


@dataclass(frozen=True)
class Own:
    """What this task has written already: its files, and its function in functional.py."""

    files: frozenset[str] = frozenset()
    functional_name: str | None = None


def name_problems(profile: KernelProfile, workspace: Workspace, own: Own, underway: Mapping[str, str]) -> list[str]:
    """Every reason why the profile's names will not do, those that follow from `operation_name` included.

    underway: operations that other tasks are approved or written for, each with the task's id.
    """
    found = list(_operation(profile.operation_name))
    if found:
        return found
    names = _with_names(profile, workspace)
    return [*_public(names), *_taken(names, workspace, own, underway)]


def _with_names(profile: KernelProfile, workspace: Workspace) -> KernelProfile:
    """The names as stated, and as they follow where they are not: both have to be free."""
    function, module = naming.class_names(
        profile.operation_name, workspace.exported_ops(), workspace.exported_modules()
    )
    computed = {
        "function_class_name": profile.function_class_name or function,
        "module_class_name": profile.module_class_name or module,
        "functional_name": profile.functional_name or naming.functional(profile.operation_name),
    }
    return profile.model_copy(update=computed)


def _operation(name: str) -> Iterator[str]:
    said = f"operation_name {name!r}"
    if not naming.OPERATION_NAME.fullmatch(name):
        yield f"{said} is no snake_case name: it becomes a file and part of Python names."
    elif keyword.iskeyword(name) or keyword.issoftkeyword(name):
        yield f"{said} is a keyword of Python, and no module of that name could be imported or read without doubt."
    elif hasattr(builtins, name):
        yield f"{said} is a built-in of Python, and means that to every reader of the code."
    elif name in _MODULES:
        yield f"{said} is the name of a module that kernels import."
    elif name.startswith("liger_"):
        yield f"{said} begins with 'liger_', which is put in front of the public name anyway."
    elif len(name) > LONGEST_NAME:
        yield f"operation_name has {len(name)} characters; {LONGEST_NAME} are allowed, and Liger's longest has 33."


def _public(profile: KernelProfile) -> Iterator[str]:
    for field, prefix in _PREFIXES.items():
        value = getattr(profile, field)
        if not value.isidentifier() or keyword.iskeyword(value):
            yield f"{field} {value!r} is no Python identifier."
        elif not value.startswith(prefix):
            yield f"{field} {value!r} does not begin with {prefix!r}, as all of Liger's do."
    if profile.function_class_name == profile.module_class_name:
        yield f"function_class_name and module_class_name are both {profile.module_class_name!r}."


def _taken(profile: KernelProfile, workspace: Workspace, own: Own, underway: Mapping[str, str]) -> Iterator[str]:
    """Names that something else in the workspace has."""
    name = profile.operation_name
    if name in underway:
        yield f"operation_name {name!r} is taken by task {underway[name]}, which is under way."
    paths = KernelPaths.of(name)
    for path in (paths.ops, paths.module):
        if path not in own.files and name not in underway and workspace.exists(path):
            yield f"operation_name {name!r} is taken: {path} is there and is not this task's."
    for field, exported in (
        ("function_class_name", workspace.exported_ops()),
        ("module_class_name", workspace.exported_modules()),
    ):
        value = getattr(profile, field)
        if value in exported and exported[value] != name:
            yield f"{field} {value!r} is taken: it is exported from {exported[value]}."
    functional = profile.functional_name
    if functional != own.functional_name and name not in underway and functional in workspace.functional_names():
        yield f"functional_name {functional!r} is taken: functional.py has one."
