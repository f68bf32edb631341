"""The frozen reference as it stands in a test or benchmark file: its imports apart from its body."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from tigon_tools.schema.reference import Reference


@dataclass(frozen=True)
class ReferenceText:
    """imports: one line each, without `import torch`. body: the rest, `example_inputs` left out."""

    imports: tuple[str, ...]
    body: str


def reference_text(reference: Reference) -> ReferenceText:
    """A dotted reference is imported where it is; code is copied."""
    if reference.module is not None:
        return ReferenceText(
            (f"from {reference.module} import {reference.entry}",), f"# {reference.origin}, imported above."
        )
    tree = ast.parse(reference.code)
    lines = reference.code.splitlines()
    imports: list[str] = []
    dropped: set[int] = set()
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            imports += _import_lines(node)
            dropped.update(range(_first_line(node), (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.FunctionDef) and node.name == "example_inputs":
            dropped.update(range(_first_line(node), (node.end_lineno or node.lineno) + 1))
    if tree.body and isinstance(tree.body[0], ast.Expr) and ast.get_docstring(tree):
        dropped.update(range(1, (tree.body[0].end_lineno or 1) + 1))
    body = "\n".join(line for number, line in enumerate(lines, 1) if number not in dropped)
    return ReferenceText(tuple(dict.fromkeys(line for line in imports if line != "import torch")), body.strip("\n"))


def _first_line(node: ast.stmt) -> int:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return min([node.lineno, *(d.lineno for d in decorators)])


def _import_lines(node: ast.Import | ast.ImportFrom) -> list[str]:
    """One import a line, as Liger has it; `__future__` imports would have to come first, and are not needed."""
    if isinstance(node, ast.ImportFrom):
        if node.module == "__future__":
            return []
        return [f"from {node.module} import {a.name}" + (f" as {a.asname}" if a.asname else "") for a in node.names]
    return [f"import {a.name}" + (f" as {a.asname}" if a.asname else "") for a in node.names]
