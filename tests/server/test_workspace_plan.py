"""A plan is checked before a human is asked about it: what would not load is not planned."""

from __future__ import annotations

from pathlib import Path

import pytest
from facts_by_hand import REFERENCE, silu_mul_facts

from tigon.workspace.layout import Workspace
from tigon.workspace.plan import plan_files, planned_paths
from tigon.workspace.render import KernelNames
from tigon.workspace.style import CannotFormat
from tigon_tools.schema.generate import GenerateResult

NAMES = KernelNames("gated_mul", "LigerGatedMulFunction", "LigerGatedMul", "liger_gated_mul", "total tokens")


def generated(source: str) -> GenerateResult:
    names = ("LigerGatedMulFunction",)
    arguments = "a, b, gate_multiplier: float = 1.0", "a, b, gate_multiplier"
    return GenerateResult(source, names, *arguments, "1D", "one program a row", "n_cols", silu_mul_facts())


def test_the_files_are_planned_in_order_and_nothing_is_written(pristine_liger: Path) -> None:
    workspace = Workspace.open(pristine_liger)
    plan = plan_files(workspace, NAMES, generated("x = 1\n"), REFERENCE)
    assert tuple(file.path for file in plan) == planned_paths("gated_mul")
    assert not workspace.exists(plan[0].path)


def test_what_only_the_compiler_refuses_is_not_planned(pristine_liger: Path) -> None:
    twice = generated("def forward(self, self):\n    pass\n")
    with pytest.raises(CannotFormat, match=r"ops/gated_mul\.py would not be valid Python \(duplicate argument 'self'"):
        plan_files(Workspace.open(pristine_liger), NAMES, twice, REFERENCE)
