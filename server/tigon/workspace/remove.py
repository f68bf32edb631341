"""Take a kernel out of a workspace: what `tigon demo` does before it writes Liger's own kernel anew.

Liger's test file stays: it is the independent judge of what is scaffolded afterwards.
"""

from __future__ import annotations

from pathlib import Path

from tigon.workspace.layout import FUNCTIONAL, OPS_INIT, TRANSFORMERS_INIT, KernelPaths, Workspace
from tigon.workspace.syntax_edit import SourceFile
from tigon.workspace.write import replace_file


def remove_kernel(root: Path, operation_name: str) -> list[str]:
    """Remove the ops file, the module, the functional entry and the exports; returns the files changed."""
    workspace = Workspace.open(root)
    ops_module = f"liger_kernel.ops.{operation_name}"
    module = f"liger_kernel.transformers.{operation_name}"
    functions = {name for name, source in workspace.exported_ops().items() if source == operation_name}
    classes = {name for name, source in workspace.exported_modules().items() if source == operation_name}
    changed = []
    for path, text in (
        (OPS_INIT, _without_imports(workspace.read(OPS_INIT), OPS_INIT, ops_module)),
        (TRANSFORMERS_INIT, _without_exports(workspace.read(TRANSFORMERS_INIT), module, classes)),
        (FUNCTIONAL, _without_functions(workspace.read(FUNCTIONAL), functions)),
    ):
        if text != workspace.read(path):
            replace_file(workspace.root / path, text)
            changed.append(path)
    paths = KernelPaths.of(operation_name)
    for path in (paths.ops, paths.module, paths.benchmark):
        if workspace.exists(path):
            (workspace.root / path).unlink()
            changed.append(path)
    return changed


def _cut(file: SourceFile, spans: set[tuple[int, int]]) -> str:
    for first, last in sorted(spans, reverse=True):
        del file.lines[first : last + 1]
    return file.text


def _without_imports(text: str, path: str, module: str) -> str:
    file = SourceFile(text, path)
    return _cut(file, {(i.first, i.last) for i in file.imports() if i.module == module})


def _without_exports(text: str, module: str, classes: set[str]) -> str:
    text = _without_imports(text, TRANSFORMERS_INIT, module)
    file = SourceFile(text, TRANSFORMERS_INIT)
    return _cut(file, {(line, line) for name, line in file.string_list("__all__") if name in classes})


def _without_functions(text: str, functions: set[str]) -> str:
    """The imports of the Function classes, and the functions that apply them."""
    file = SourceFile(text, FUNCTIONAL)
    spans = {(i.first, i.last) for i in file.imports() if i.name in functions and i.top_level}
    for definition in file.definitions():
        body = "".join(file.lines[definition.first : definition.last + 1])
        if any(f"{name}.apply(" in body for name in functions):
            last = definition.last
            while last + 1 < len(file.lines) and not file.lines[last + 1].strip():
                last += 1
            spans.add((definition.first, last))
    return _cut(file, spans)
