"""The text of a reference: what it defines, what it imports, which lines are its own."""

from __future__ import annotations

import ast

from tigon_tools.schema.errors import JobError

ALLOWED_IMPORTS = frozenset(
    "__future__ collections dataclasses enum functools itertools math numbers operator torch typing".split()
)
"""A frozen reference must mean the same tomorrow: torch, and standard modules without state."""


def parse(code: str, origin: str) -> ast.Module:
    """The syntax tree of a reference.

    Raises:
        JobError: "bad_reference" with the line of a syntax error.
    """
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError) as problem:
        # ValueError: null bytes or lone surrogates; RecursionError: an expression nested too deep.
        line = getattr(problem, "lineno", None)
        where = f" (line {line})" if line else ""
        raise JobError(
            "bad_reference",
            f"{origin} is not valid Python: {getattr(problem, 'msg', problem)}{where}.",
            "Correct the reference's code.",
            line,
        ) from None


def check_imports(tree: ast.Module, origin: str) -> None:
    """Refuse a reference that needs more than torch.

    Raises:
        JobError: "bad_reference" naming the import and its line.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = ["." * node.level + (node.module or "")]
        else:
            continue
        for module in modules:
            if module.split(".")[0] not in ALLOWED_IMPORTS:
                raise JobError(
                    "bad_reference",
                    f"{origin} is not torch-only: line {node.lineno} imports {module!r}.",
                    "Write the reference with torch alone: it is frozen, and must mean the same tomorrow.",
                    node.lineno,
                )


def entries(tree: ast.Module) -> list[str]:
    """Top-level names that can be a reference: functions (not `example_inputs`) and classes."""
    found = [
        node.name
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name != "example_inputs"
    ]
    return [name for name in found if not name.startswith("_")] or found


def choose_entry(tree: ast.Module, entry: str | None, origin: str) -> str:
    """The entry that was asked for, or the only one there is.

    Raises:
        JobError: "bad_reference" listing what there is.
    """
    names = entries(tree)
    assigned = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    imported = {
        (alias.asname or alias.name).split(".")[0]
        for node in tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    if entry is not None:
        private = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        if entry in private | assigned | imported:
            return entry
        raise JobError(
            "bad_reference",
            f"{origin} defines no {entry!r}; it defines {', '.join(names) or 'nothing'}.",
            "Name one of these as `entry`.",
        )
    if len(names) == 1:
        return names[0]
    raise JobError(
        "bad_reference",
        f"{origin} defines {', '.join(names) or 'no function and no nn.Module'}: which one is the reference?"
        if names
        else f"{origin} defines no function and no nn.Module.",
        "Name it as `entry`." if names else "Give code that defines the operation as a function.",
    )


def _entry_function(tree: ast.Module, entry: str) -> ast.FunctionDef | None:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == entry:
            return node
        if isinstance(node, ast.ClassDef) and node.name == entry:
            for item in node.body:
                if isinstance(item, ast.FunctionDef) and item.name == "forward":
                    return item
    return None


def returned_names(tree: ast.Module, entry: str) -> tuple[str | None, ...]:
    """Names of the local variables that the entry returns; None for an expression."""
    function = _entry_function(tree, entry)
    returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)] if function else []
    if len(returns) != 1 or returns[0].value is None:
        return ()
    value = returns[0].value
    items = value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]
    return tuple(item.id if isinstance(item, ast.Name) else None for item in items)


def type_checks(tree: ast.Module, entry: str) -> dict[str, int]:
    """Names that the entry asks for their Python type (`isinstance(alpha, float)`), and the line."""
    function = _entry_function(tree, entry)
    found: dict[str, int] = {}
    for node in ast.walk(function) if function else ():
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args):
            continue
        asked = node.args[0]
        if node.func.id in ("isinstance", "type") and isinstance(asked, ast.Name):
            found.setdefault(asked.id, node.lineno)
    return found


def mentions_dtype(tree: ast.Module, dtype: str) -> bool:
    """Whether the code names a dtype literally (`torch.bfloat16`, `x.bfloat16()`)."""
    return any(isinstance(node, ast.Attribute) and node.attr == dtype for node in ast.walk(tree))
