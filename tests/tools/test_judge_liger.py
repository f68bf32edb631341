"""Liger's own kernels, which nobody here wrote, are right: the judge has nothing to say against them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tigon_tools.judge.judge_job import run
from tigon_tools.schema.judge import JudgeRequest, JudgeResult
from tigon_tools.schema.reference import InputSpec, Reference

HEADER = "import torch\nimport torch.nn.functional as F\n\n\n"
ROWS = (2, 3, 64)

# Liger's function, what it computes, its tensors, and the inputs its backward uses as memory.
KERNELS: dict[str, tuple[str, str, tuple[str, ...], tuple[str, ...]]] = {
    "relu_squared": (
        "liger_kernel.ops.relu_squared:LigerReLUSquaredFunction",
        "def f(x):\n    return torch.relu(x) ** 2\n",
        ("x",),
        (),
    ),
    "swiglu": (
        "liger_kernel.ops.swiglu:LigerSiLUMulFunction",
        "def f(a, b, gate_multiplier: float = 1.0):\n    return F.silu(gate_multiplier * a) * b\n",
        ("a", "b"),
        ("a", "b"),
    ),
    "geglu": (
        "liger_kernel.ops.geglu:LigerGELUMulFunction",
        "def f(a, b):\n    return F.gelu(a, approximate='tanh') * b\n",
        ("a", "b"),
        ("a", "b"),
    ),
    "softmax": (
        "liger_kernel.ops.softmax:LigerSoftmaxFunction",
        "def f(x):\n    return torch.softmax(x, -1)\n",
        ("x",),
        (),
    ),
}


def judged(kernel: str, workspace: Path, **more: object) -> JudgeResult:
    candidate, code, names, overwrites = KERNELS[kernel]
    reference = Reference(HEADER + code, "f", inputs=tuple(InputSpec(name, ROWS) for name in names))
    settings = {"overwrites": overwrites, "workspace": str(workspace), **more}
    return run(JudgeRequest(candidate, reference, **settings))  # type: ignore[arg-type]


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_false_alarm(kernel: str, pristine_liger: Path) -> None:
    result = judged(kernel, pristine_liger)
    assert result.passed, "\n".join(f"{f.status} {f.check}: {f.detail} [{f.case}]" for f in result.findings)
    assert result.cases > 25
    # Rows longer than 65536 are refused by Liger, and relu_squared gives 0 for NaN.
    flagged = {f.check for f in result.findings if f.status == "flagged"}
    assert flagged <= {"long_rows", "forward", "gradient"}
    assert "long_rows" in flagged


def test_gradients_written_into_the_inputs_show(pristine_liger: Path) -> None:
    """Liger's GLU backward stores gradients where its inputs were; that has to be declared."""
    result = judged("swiglu", pristine_liger, overwrites=(), dtypes=("float32",))
    found = [f for f in result.findings if f.status == "failed"]
    assert [f.check for f in found] == ["input_modified"]
    assert "a (its memory is used for a gradient), b (its memory is used for a gradient)" in found[0].detail
