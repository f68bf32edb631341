"""What of a scaffold is still to be written: functions that raise the sentence they were generated with."""

from __future__ import annotations

import ast


def unwritten(source: str) -> dict[str, str]:
    """Name and sentence of each function at the top of a file that does nothing but raise NotImplementedError."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return {}  # the import gate says so
    found = {}
    for function in tree.body:
        if not isinstance(function, ast.FunctionDef):
            continue
        body = [s for s in function.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
        sentence = _raised(body[0]) if len(body) == 1 else None
        if sentence is not None:
            found[function.name] = sentence
    return found


def _raised(statement: ast.stmt) -> str | None:
    """The text of `raise NotImplementedError("...")`."""
    if not isinstance(statement, ast.Raise) or not isinstance(statement.exc, ast.Call):
        return None
    call = statement.exc
    if not isinstance(call.func, ast.Name) or call.func.id != "NotImplementedError":
        return None
    text = call.args[0] if call.args else None
    return text.value if isinstance(text, ast.Constant) and isinstance(text.value, str) else ""
