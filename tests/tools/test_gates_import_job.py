"""Job `import`: the workspace's own files are imported, and what is wrong is said with its place."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from parent_client import ParentClient, parent_client
from small_workspace import snapshot, write_workspace

from tigon_tools.schema.gates import ImportRequest, ImportResult

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="runs jobs through a forking parent")


@pytest.fixture(scope="module")
def parent() -> Iterator[ParentClient]:
    with parent_client("--interpret") as client:
        yield client


def problems(parent: ParentClient, root: Path, *names: str) -> tuple[str, ...]:
    result = parent.result("import", ImportRequest(str(root), names))
    assert isinstance(result, ImportResult)
    assert result.passed == (not result.problems)
    return result.problems


def test_what_is_there_is_imported_and_nothing_is_left_behind(parent: ParentClient, tmp_path: Path) -> None:
    root = write_workspace(tmp_path)
    before = snapshot(root)
    assert (
        problems(parent, root, "liger_kernel.ops:LigerDoubleFunction", "liger_kernel.ops.double", "test.utils:three")
        == ()
    )
    assert snapshot(root) == before


def test_the_installed_liger_does_not_stand_in_for_the_workspace(parent: ParentClient, tmp_path: Path) -> None:
    """`liger_kernel.ops.swiglu` exists in the package index's liger-kernel, and not in this workspace."""
    pytest.importorskip("liger_kernel")
    (problem,) = problems(parent, write_workspace(tmp_path), "liger_kernel.ops.swiglu:LigerSiLUMulFunction")
    assert "No module named 'liger_kernel.ops.swiglu'" in problem


def test_a_liger_that_is_imported_before_does_not_stay(parent: ParentClient, tmp_path: Path) -> None:
    first = write_workspace(tmp_path / "first", src__liger_kernel__extra="")
    second = write_workspace(tmp_path / "second")
    hijack = "import json, sys\nsys.modules['liger_kernel.ops'] = json\n"
    third = write_workspace(tmp_path / "third", test__early=hijack)
    assert problems(parent, first, "liger_kernel.extra") == ()
    assert len(problems(parent, second, "liger_kernel.extra")) == 1
    (problem,) = problems(parent, third, "test.early", "liger_kernel.ops")
    assert "not from the workspace" in problem


BROKEN = {
    "syntax": ("def f(:\n    pass\n", "SyntaxError: invalid syntax (src/liger_kernel/ops/broken.py:1)."),
    "name": (
        "x = 1\n\ny = undefined\n",
        "NameError: name 'undefined' is not defined (src/liger_kernel/ops/broken.py:3).",
    ),
    "deep": (
        "import json\n\njson.loads('{')\n",
        "JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1) "
        "(src/liger_kernel/ops/broken.py:3).",
    ),
    "exit": ("import sys\nsys.exit(0)\n", "SystemExit: 0 (src/liger_kernel/ops/broken.py:2)."),
    "missing": (
        "from liger_kernel.nowhere import x\n",
        "ModuleNotFoundError: No module named 'liger_kernel.nowhere' (src/liger_kernel/ops/broken.py:1).",
    ),
    "empty message": ("assert False\n", "AssertionError (src/liger_kernel/ops/broken.py:1)."),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_an_error_comes_with_file_and_line(parent: ParentClient, tmp_path: Path, kind: str) -> None:
    text, says = BROKEN[kind]
    root = write_workspace(tmp_path, src__liger_kernel__ops__broken=text)
    (problem,) = problems(parent, root, "liger_kernel.ops.broken:f")
    assert problem == f"liger_kernel.ops.broken cannot be imported: {says}"


def test_a_missing_name_says_where_it_should_be(parent: ParentClient, tmp_path: Path) -> None:
    (problem,) = problems(parent, write_workspace(tmp_path), "liger_kernel.ops:LigerTripleFunction", "liger_kernel.ops")
    assert problem.startswith("liger_kernel.ops has no LigerTripleFunction (src/liger_kernel/ops/__init__.py:1)")


def test_a_folder_that_is_no_workspace_is_refused(parent: ParentClient, tmp_path: Path) -> None:
    failure = parent.failure("import", ImportRequest(str(tmp_path), ("liger_kernel",)))
    assert failure.kind == "bad_request"
    assert str(tmp_path) in failure.message
