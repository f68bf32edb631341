"""Generated kernels on a real GPU: compiled, judged in full, and past 2**31 elements."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from row_zoo import ROW_ZOO, row_reference

from tigon_tools.codegen.generate_job import run as generate
from tigon_tools.judge.judge_job import run as judge
from tigon_tools.schema.generate import GenerateRequest
from tigon_tools.schema.judge import JudgeRequest
from tigon_tools.schema.reference import Reference

pytestmark = pytest.mark.gpu

HEADER = "import torch\nimport torch.nn.functional as F\n\n\n"
REFERENCES = {
    "relu_squared": "def relu_squared(x):\n    return torch.relu(x) ** 2\n",
    "silu_mul": "def silu_mul(a, b, gate_multiplier: float = 1.5):\n    return F.silu(gate_multiplier * a) * b\n",
    "gelu_mul": "def gelu_mul(a, b):\n    return F.gelu(a, approximate='tanh') * b\n",
    "gelu_exact": "def gelu_exact(x):\n    return F.gelu(x)\n",
    "mish": "def mish(x):\n    return F.mish(x)\n",
    "softplus_mul": "def softplus_mul(x, y):\n    return F.softplus(x) * y\n",
    "swish_beta": "def swish_beta(x, alpha: float = 0.7):\n    return x * torch.sigmoid(alpha * x)\n",
    "clamped_glu": (
        "def clamped_glu(gate, up, limit: float = 2.0, alpha: float = 1.702):\n"
        "    gate = gate.clamp(max=limit)\n    up = up.clamp(-limit, limit)\n"
        "    glu = gate * torch.sigmoid(alpha * gate)\n    return (up + 1) * glu, glu\n"
    ),
    "elu_cast": "def elu_cast(a, b):\n    return F.elu(a.float()).to(a.dtype) * b\n",
    "logs": "def logs(x):\n    return torch.log1p(x.abs()) * torch.erf(x) + torch.expm1(-x.abs()) ** 3\n",
    "powers": "def powers(x):\n    return x.abs() ** 1.5 + x**3 + torch.atan(x)\n",
}


def write(name: str, folder: Path) -> Path:
    request = GenerateRequest(Reference(HEADER + REFERENCES[name], name), name, "LigerCandidateFunction")
    path = folder / f"{name}.py"
    path.write_text(generate(request).ops_source)
    return path


@pytest.mark.parametrize("name", ROW_ZOO)
def test_a_generated_row_kernel_is_right_when_compiled(name: str, tmp_path: Path) -> None:
    reference = row_reference(name)
    path = tmp_path / f"{name}.py"
    path.write_text(generate(GenerateRequest(reference, name, "LigerCandidateFunction")).ops_source)
    result = judge(JudgeRequest(f"{path}:LigerCandidateFunction", reference, device="cuda"))
    bad = [f"{f.check}: {f.detail} {f.case}" for f in result.findings if f.status == "failed"]
    assert result.passed, "\n".join(bad)


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"generated_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", REFERENCES)
def test_a_generated_kernel_is_right_when_compiled(name: str, tmp_path: Path) -> None:
    candidate = f"{write(name, tmp_path)}:LigerCandidateFunction"
    result = judge(JudgeRequest(candidate, Reference(HEADER + REFERENCES[name], name), device="cuda"))
    bad = [f"{f.check}: {f.detail} {f.case}" for f in result.findings if f.status == "failed"]
    assert result.passed, "\n".join(bad)
    assert result.cases > 20


def test_offsets_past_two_to_the_31(tmp_path: Path) -> None:
    """As one long row, and as strided rows whose offsets pass 2**31 though there are few elements."""
    function = load(write("relu_squared", tmp_path)).LigerCandidateFunction
    long = torch.randn(2**31 + 4097, device="cuda", dtype=torch.bfloat16)
    assert torch.equal(function.apply(long)[-5000:], torch.relu(long[-5000:].float()).square().bfloat16())
    rows = torch.as_strided(long, (3, 1000), (2**30 + 7, 1))
    assert torch.equal(function.apply(rows), torch.relu(rows.float()).square().bfloat16())


def test_a_module_compiles_with_torch(tmp_path: Path) -> None:
    """torch.compile hands scalars as float64; the kernel must still compute in float32, and rightly."""
    function = load(write("swish_beta", tmp_path)).LigerCandidateFunction
    x = torch.randn(64, 1000, device="cuda", requires_grad=True)
    y = torch.compile(lambda x: function.apply(x, 1.3))(x)
    expected = x.double() * torch.sigmoid(1.3 * x.double())
    torch.testing.assert_close(y.double(), expected, rtol=1e-5, atol=1e-6)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    (right,) = torch.autograd.grad(expected.sum(), x)
    torch.testing.assert_close(gradient, right, rtol=1e-4, atol=1e-5)
