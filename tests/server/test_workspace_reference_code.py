"""Liger's own code, cut to what was asked and to what a client shows."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tigon.workspace.layout import Workspace
from tigon.workspace.reference_code import LONGEST_ANSWER, UnknownKernel, find, kernel_index


def test_every_kernel_of_the_index_is_in_liger_and_the_other_way_round(pristine_liger: Path) -> None:
    indexed = {entry["stem"] for entry in kernel_index()}
    # The second half of fused_moe, which is no kernel of its own.
    assert indexed == set(Workspace.open(pristine_liger).kernels()) - {"fused_moe_kernels"}
    assert {entry["tier"] for entry in kernel_index()} == {1, 2, 3}


@pytest.mark.parametrize(("tier", "stem"), [(1, "swiglu"), (2, "rms_norm"), (3, "cross_entropy")])
def test_a_tier_gives_the_kernel_liger_says_to_read_first(tier: int, stem: str, pristine_liger: Path) -> None:
    parts = find(Workspace.open(pristine_liger), tier=tier)
    assert parts[0].path == f"src/liger_kernel/ops/{stem}.py"


def test_answers_are_short_and_cut_at_whole_definitions(pristine_liger: Path) -> None:
    workspace = Workspace.open(pristine_liger)
    for kernel in ("swiglu", "rms_norm", "cross_entropy", "fused_add_rms_norm", "mhc", "softmax"):
        for part in ("ops", None):
            parts = find(workspace, kernel, part=part)
            assert sum(len(p.text) for p in parts) <= LONGEST_ANSWER
            for shown in parts:
                ast.parse(shown.text)
                assert workspace.read(shown.path).startswith(shown.text.split("\n\n# Not shown")[0])


def test_a_small_file_is_whole(pristine_liger: Path) -> None:
    workspace = Workspace.open(pristine_liger)
    (part,) = find(workspace, "relu_squared", part="test")
    assert part.text == workspace.read("test/transformers/test_relu_squared.py")


def test_an_unknown_kernel_names_its_neighbours(pristine_liger: Path) -> None:
    workspace = Workspace.open(pristine_liger)
    with pytest.raises(UnknownKernel, match="swiglu"):
        find(workspace, "swigluu")
    with pytest.raises(UnknownKernel, match="name a kernel"):
        find(workspace)
    with pytest.raises(UnknownKernel, match="no kernel of tier 7"):
        find(workspace, tier=7)
