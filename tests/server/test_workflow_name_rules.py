"""What a kernel may be called: each name that will not do has one sentence that says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from facts_by_hand import small_workspace

from tigon.workflow.kernel_profile import read_profile
from tigon.workflow.name_rules import Own, name_problems
from tigon.workspace.layout import Workspace

NOTHING = Own()


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return small_workspace(tmp_path)


def found(workspace: Workspace, own: Own = NOTHING, underway: dict[str, str] | None = None, **names: Any) -> list[str]:
    profile = read_profile({"operation_name": "gated_mul", "reference": "x.py:f", **names})
    return name_problems(profile, workspace, own, underway or {})


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"operation_name": "GatedMul"}, "'GatedMul' is no snake_case name"),
        ({"operation_name": "../../etc/x"}, "is no snake_case name"),
        ({"operation_name": "lambda"}, "'lambda' is a keyword of Python"),
        ({"operation_name": "match"}, "'match' is a keyword of Python"),  # a soft one
        ({"operation_name": "print"}, "'print' is a built-in of Python"),
        ({"operation_name": "triton"}, "'triton' is the name of a module that kernels import"),
        ({"operation_name": "liger_mish"}, "begins with 'liger_'"),
        ({"operation_name": "x" * 61}, "has 61 characters"),
        ({"operation_name": "geglu"}, "'geglu' is taken: src/liger_kernel/ops/geglu.py is there"),
        ({"function_class_name": "Liger Mul"}, "'Liger Mul' is no Python identifier"),
        ({"function_class_name": "GatedMul"}, "does not begin with 'Liger'"),
        ({"functional_name": "gated_mul"}, "does not begin with 'liger_'"),
        ({"function_class_name": "LigerMul", "module_class_name": "LigerMul"}, "are both 'LigerMul'"),
        ({"function_class_name": "LigerSiLUMulFunction"}, "is taken: it is exported from swiglu"),
        ({"module_class_name": "LigerSwiGLUMLP"}, "is taken: it is exported from swiglu"),
        ({"functional_name": "liger_swiglu"}, "is taken: functional.py has one"),
    ],
)  # fmt: skip
def test_a_name_that_will_not_do_is_one_sentence_with_the_reason(
    workspace: Workspace, names: dict[str, Any], said: str
) -> None:
    sentences = found(workspace, **names)
    assert len(sentences) == 1, sentences
    assert said in sentences[0]


@pytest.mark.parametrize("name", ["gated_mul", "mish", "relu2", "softcap", "matching", "print_free"])
def test_a_name_of_the_field_is_fine(workspace: Workspace, name: str) -> None:
    assert found(workspace, operation_name=name) == []


def test_a_name_that_another_task_works_under_is_taken(workspace: Workspace) -> None:
    assert found(workspace, underway={"gated_mul": "gated_mul-0001"}) == [
        "operation_name 'gated_mul' is taken by task gated_mul-0001, which is under way."
    ]


def test_what_the_task_wrote_itself_is_not_in_its_own_way(workspace: Workspace) -> None:
    (workspace.root / "src/liger_kernel/ops/gated_mul.py").write_text("")
    functional = workspace.root / "src/liger_kernel/transformers/functional.py"
    functional.write_text(functional.read_text() + "def liger_gated_mul(a):\n    return a\n")

    assert len(found(workspace)) == 2
    own = Own(frozenset({"src/liger_kernel/ops/gated_mul.py"}), "liger_gated_mul")
    assert found(workspace, own) == []
    # Having files of its own gives no right to another kernel's function.
    assert "is taken" in found(workspace, own, functional_name="liger_swiglu")[0]
