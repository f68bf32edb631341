"""Facts as tracing gives them for `silu(gate_multiplier * a) * b`, written by hand, and a small workspace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tigon.workflow.fill import Launch
from tigon.workspace.layout import FUNCTIONAL, OPS_INIT, TRANSFORMERS_INIT, Workspace
from tigon_tools.schema.reference import Evidence, Facts, InputFact, OutputFact, Reference

LAUNCH = Launch("1D", "one program a row", "calculate_settings(n_cols)")

REFERENCE = Reference(
    "import torch.nn.functional as F\n\n\ndef silu_mul(a, b, gate_multiplier: float = 1.0):\n"
    "    return F.silu(gate_multiplier * a) * b\n",
    "silu_mul",
)


def silu_mul_facts(**changes: Any) -> Facts:
    facts = Facts(
        tier=1,
        tier_description="element-wise",
        evidence=(Evidence("every op is point-wise: aten.mul, aten.sigmoid.", ("aten.mul", "aten.sigmoid")),),
        closest_kernels=("swiglu",),
        inputs=(
            InputFact("a", "a", "tensor", (4, 64), "input", True),
            InputFact("b", "b", "tensor", (4, 64), "input", True),
            InputFact("gate_multiplier", "gate_multiplier", "scalar", None, "float", False, False, 1.0, False, "float"),
        ),
        outputs=(OutputFact("y", "Y", (4, 64), "input", True),),
        iteration_space=(4, 64),
        saved_tensors=("a", "b"),
        recomputed=("mul", "sigmoid"),
        saved_bytes=1024,
        eager_saved_bytes=1536,
        min_bytes_forward=1536,
        min_bytes_backward=2560,
        flops_forward=1024,
        flops_backward=4096,
        forward_formulas={"p": "gate_multiplier * a", "Y": "silu(p) * b"},
        gradient_formulas={"db": "dY * silu(p)", "da": "dY * b * silu'(p) * gate_multiplier"},
        forward_ops={"aten.mul": 3, "aten.sigmoid": 1},
        backward_ops={"aten.mul": 6, "aten.sigmoid": 1},
        precision_sensitive_ops=("sigmoid",),
        traced_dtype="bfloat16",
        is_module=False,
        generates=True,
        torch_version="2.13.0",
    )
    return replace(facts, **changes)


def small_workspace(root: Path) -> Workspace:
    """Liger's layout with two kernels in it."""
    texts = {
        "pyproject.toml": '[project]\nname = "liger_kernel"\nversion = "0.8.5"\n',
        OPS_INIT: "from liger_kernel.ops.swiglu import LigerSiLUMulFunction  # noqa: F401\n",
        TRANSFORMERS_INIT: "from liger_kernel.transformers.swiglu import LigerSwiGLUMLP  # noqa: F401\n",
        FUNCTIONAL: "def liger_swiglu(a, b):\n    return a\n",
        "src/liger_kernel/ops/swiglu.py": "",
        "src/liger_kernel/ops/geglu.py": "",
    }
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return Workspace.open(root)
