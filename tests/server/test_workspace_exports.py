"""Edits of Liger's own files: only lines are added, each at its place, and twice changes nothing."""

from __future__ import annotations

import difflib
import subprocess
from pathlib import Path

import pytest
from ruff import find_ruff_bin

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


LONG = "fused_linear_scaled_cross_entropy_with_a_very_long_name_indeed"


@pytest.mark.parametrize("name", ["a", "fused", "kl", "llama10", "llama4_rope2", "mish", "relu2", "x10", "zz", LONG])
def test_ruff_finds_the_edited_files_in_order(name: str, pristine_liger: Path) -> None:
    """isort's order is ruff's to say: numbers by value, long lines broken."""
    workspace = Workspace.open(pristine_liger)
    # Another ruff than Liger's dislikes one import that is there already; it stands in the way of seeing ours.
    ops = "\n".join(
        f"from liger_kernel.ops.{m} import f  # noqa: F401" for m in ("kl_div", "llama4_rope", "mhc", "rope")
    )
    title = "".join(word.capitalize() for word in name.split("_"))
    signature = ", ".join(f"argument_{number}: float = 1.0" for number in range(6))
    edited = {
        OPS_INIT: exports.add_ops_exports(ops + "\n", name, (f"Liger{title}Function", f"{name}_backward")),
        TRANSFORMERS_INIT: exports.add_module_export(workspace.read(TRANSFORMERS_INIT), name, f"Liger{title}"),
        FUNCTIONAL: exports.add_functional(
            workspace.read(FUNCTIONAL), f"Liger{title}Function", f"liger_{name}", signature, "argument_0, argument_1"
        ),
    }
    for path, text in edited.items():
        for check in (["check", "--select", "I"], ["format", "--diff"]):
            done = subprocess.run(
                [find_ruff_bin(), *check, "--no-cache", "--stdin-filename", path, "-"],
                cwd=pristine_liger,
                input=text,
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, done.stdout + done.stderr


def test_a_plain_entry_is_renewed_and_one_with_a_humans_lines_is_not(pristine_liger: Path) -> None:
    before = Workspace.open(pristine_liger).read(FUNCTIONAL)
    names = ("LigerSwishBetaFunction", "liger_swish_beta")
    many = ", ".join(f"argument_{number}: float = 1.0" for number in range(6))
    for signature, call in (("x", "x"), (many, "argument_0")):
        first = exports.add_functional(before, *names, signature, call)
        assert exports.add_functional(first, *names, "x, alpha", "x, alpha") == exports.add_functional(
            before, *names, "x, alpha", "x, alpha"
        )
    human = exports.add_functional(before, *names, "x", "x").replace(
        "def liger_swish_beta(x):\n", 'def liger_swish_beta(x):\n    """Mine."""\n'
    )
    with pytest.raises(CannotEdit, match=r"another liger_swish_beta \(line \d+\)"):
        exports.add_functional(human, *names, "x, alpha", "x, alpha")


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
