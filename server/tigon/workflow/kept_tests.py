"""Whether a test file still tests what it did: tests may be added, and what was there stays as it was.

The tests are what a human approves with the scaffold. An assistant that may change them can make anything pass.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

SWITCHES = frozenset({"pytestmark", "collect_ignore", "pytest_plugins", "__test__"})
"""Names by which a module tells pytest to skip or to load something."""


def weakened(before: str, now: str) -> list[str]:
    """Each thing that a test file has lost or overrides, as a phrase; empty where it only grew.

    before: as scaffolded, or as the workspace had it. Comments and layout do not count.
    """
    try:
        tree = ast.parse(now)
    except SyntaxError as problem:
        return [f"it is not valid Python (line {problem.lineno})"]
    expected = ast.parse(before).body
    left = Counter(ast.dump(statement) for statement in tree.body)
    lost = []
    for statement in expected:
        if left[ast.dump(statement)]:
            left[ast.dump(statement)] -= 1
        else:
            lost.append(f"{_described(statement)} is changed or gone")
    if lost:
        return lost
    known = {name for statement in expected for name in _bound(statement)}
    added = [s for s in tree.body if left[ast.dump(s)] > 0]
    names = {name for statement in added for name in _bound(statement)}
    again = [f"{name} is defined again or switches tests off" for name in sorted(names & (known | SWITCHES))]
    return again + [f"{_described(s)} reaches the other tests" for s in added if _reaches(s)]


def names_of_tests(text: str) -> list[str]:
    """The test functions of a file, in order."""
    functions = (s for s in ast.parse(text).body if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return [function.name for function in functions if function.name.startswith("test")]


def _reaches(statement: ast.stmt) -> bool:
    """Whether a statement does something to the file's other tests when it is loaded, or around each of them.

    `SHAPES.clear()`, `del test_it`, `torch.equal = same`, a fixture with `autouse`. What an added test does
    while it runs is not looked at: the judge runs none of them.
    """
    if any(isinstance(node, ast.keyword) and node.arg == "autouse" for node in ast.walk(statement)):
        return True
    return any(_acts(inner) for inner in _loaded(statement))


def _loaded(statement: ast.stmt) -> Iterator[ast.stmt]:
    """The statement and those in it that run when the file is loaded."""
    yield statement
    if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.stmt):
                yield from _loaded(child)


def _acts(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.Assign):
        return not all(isinstance(target, (ast.Name, ast.Tuple)) for target in statement.targets)
    return isinstance(statement, (ast.Delete, ast.AugAssign))


def _described(statement: ast.stmt) -> str:
    names = list(_bound(statement))
    if names:
        return names[0]
    return f"`{ast.unparse(statement).splitlines()[0]}`"


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Names that a statement of a module gives a value, at any depth outside functions and classes."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
        return
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        yield from ((alias.asname or alias.name).split(".")[0] for alias in statement.names)
        return
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.stmt):
            yield from _bound(child)
        else:
            yield from (n.id for n in ast.walk(child) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
