"""Edits of Liger's own files: only lines are added, each at its place, and twice changes nothing."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from tigon.workspace import exports
from tigon.workspace.layout import FUNCTIONAL, OPS_INIT, TRANSFORMERS_INIT, Workspace
from tigon.workspace.remove import remove_kernel
from tigon.workspace.syntax_edit import CannotEdit

OPS_NAMES = ("LigerSwishBetaFunction", "swish_beta_backward", "swish_beta_forward")


def added(before: str, after: str) -> list[str]:
    """Lines added; nothing may be removed or changed."""
    changes = list(difflib.ndiff(before.splitlines(keepends=True), after.splitlines(keepends=True)))
    assert not [line for line in changes if line.startswith("- ")]
    return [line[2:] for line in changes if line.startswith("+ ")]


def test_liger_without_a_kernel_gets_it_back_byte_for_byte(pristine_liger: Path, liger_workspace: Path) -> None:
    """Liger's own alphabetical places are the independent expectation."""
    remove_kernel(liger_workspace, "relu_squared")
    workspace, original = Workspace.open(liger_workspace), Workspace.open(pristine_liger)
    ops = exports.add_ops_exports(
        workspace.read(OPS_INIT),
        "relu_squared",
        ("LigerReLUSquaredFunction", "relu_squared_backward", "relu_squared_forward"),
    )
    assert ops == original.read(OPS_INIT)
    functional = exports.add_functional(
        workspace.read(FUNCTIONAL), "LigerReLUSquaredFunction", "liger_relu_squared", "x", "x"
    )
    assert functional == original.read(FUNCTIONAL)


def test_exports_are_added_and_nothing_else_changes(pristine_liger: Path) -> None:
    workspace = Workspace.open(pristine_liger)
    before = workspace.read(OPS_INIT)
    after = exports.add_ops_exports(before, "swish_beta", OPS_NAMES)
    assert added(before, after) == [
        f"from liger_kernel.ops.swish_beta import {name}  # noqa: F401\n" for name in OPS_NAMES
    ]
    lines = after.splitlines()
    place = lines.index("from liger_kernel.ops.swish_beta import LigerSwishBetaFunction  # noqa: F401")
    assert "ops.swiglu" in lines[place - 1]
    assert "ops.tiled_mlp" in lines[place + 3]

    before = workspace.read(TRANSFORMERS_INIT)
    after = exports.add_module_export(before, "swish_beta", "LigerSwishBeta")
    assert added(before, after) == [
        "from liger_kernel.transformers.swish_beta import LigerSwishBeta  # noqa: F401\n",
        '    "LigerSwishBeta",\n',
    ]

    before = workspace.read(FUNCTIONAL)
    after = exports.add_functional(
        before, "LigerSwishBetaFunction", "liger_swish_beta", "x, alpha: float = 1.0", "x, alpha"
    )
    new = "".join(added(before, after))
    assert "from liger_kernel.ops import LigerSwishBetaFunction\n" in new
    assert "def liger_swish_beta(x, alpha: float = 1.0):\n    return LigerSwishBetaFunction.apply(x, alpha)\n" in new
    compile(after, "functional.py", "exec")


@pytest.mark.parametrize("name", ["aaa", "mish", "zzz_last"])
def test_any_name_has_a_place_and_twice_changes_nothing(name: str, pristine_liger: Path) -> None:
    workspace = Workspace.open(pristine_liger)
    for path, edit in (
        (OPS_INIT, lambda t: exports.add_ops_exports(t, name, (f"Liger{name}Function", f"{name}_forward"))),
        (TRANSFORMERS_INIT, lambda t: exports.add_module_export(t, name, f"Liger{name}")),
        (FUNCTIONAL, lambda t: exports.add_functional(t, f"Liger{name}Function", f"liger_{name}", "x", "x")),
    ):
        before = workspace.read(path)
        once = edit(before)
        assert added(before, once)
        assert edit(once) == once


def test_line_ends_and_a_missing_last_newline_are_kept(pristine_liger: Path) -> None:
    unix = Workspace.open(pristine_liger).read(FUNCTIONAL)
    windows = unix.replace("\n", "\r\n")
    edited = exports.add_functional(windows, "LigerZzzFunction", "liger_zzz", "x", "x")
    assert edited.replace("\r\n", "\n") == exports.add_functional(unix, "LigerZzzFunction", "liger_zzz", "x", "x")
    assert "\n" not in edited.replace("\r\n", "")
    cut = unix.rstrip("\n")
    added(cut + "\n", exports.add_functional(cut, "LigerZzzFunction", "liger_zzz", "x", "x"))


def test_a_name_that_something_else_has_is_an_error(pristine_liger: Path) -> None:
    workspace = Workspace.open(pristine_liger)
    with pytest.raises(CannotEdit, match="another LigerSiLUMulFunction"):
        exports.add_ops_exports(workspace.read(OPS_INIT), "silu_mul", ("LigerSiLUMulFunction",))
    with pytest.raises(CannotEdit, match="another liger_swiglu"):
        exports.add_functional(workspace.read(FUNCTIONAL), "LigerXFunction", "liger_swiglu", "a, b", "a, b")
    with pytest.raises(CannotEdit, match="not valid Python"):
        exports.add_ops_exports("def f(:\n", "x", ("LigerXFunction",))
