"""Liger's ops for the benchmarks: the mathematics as a person writes it, and Liger's call for the same."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tigon_tools.codegen.generate_job import run as generate
from tigon_tools.schema.generate import GenerateRequest
from tigon_tools.schema.reference import InputSpec, Reference

HEADER = "import torch\nimport torch.nn.functional as F\n\n\n"


@dataclass(frozen=True)
class Op:
    """One op of Liger's.

    source: the reference, whose function is called `f`.
    inputs: kinds of its arguments: "cells" (rows, columns), "columns", "one", "three", "logits" (log-probabilities
        that take a gradient), "target" (probabilities or log-probabilities that take none), "labels".
    liger: from `liger_kernel.ops` and the inputs to Liger's result.
    forward: tensors of the whole shape that a forward has to read and write.
    backward: those of a backward.
    """

    source: str
    inputs: tuple[str, ...]
    liger: Callable[..., Any]
    forward: int
    backward: int


def _function(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"liger_kernel.ops.{module}"), name).apply


_NORM = "    h = {x}.float()\n    h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps)\n"

OPS: dict[str, Op] = {
    "relu_squared": Op(
        "def f(x):\n    return torch.relu(x) ** 2\n",
        ("cells",),
        lambda x: _function("relu_squared", "LigerReLUSquaredFunction")(x),
        2,
        3,
    ),
    "swiglu": Op(
        "def f(a, b):\n    return F.silu(a) * b\n",
        ("cells", "cells"),
        lambda a, b: _function("swiglu", "LigerSiLUMulFunction")(a, b),
        3,
        5,
    ),
    "geglu": Op(
        "def f(a, b):\n    return F.gelu(a, approximate='tanh') * b\n",
        ("cells", "cells"),
        lambda a, b: _function("geglu", "LigerGELUMulFunction")(a, b),
        3,
        5,
    ),
    "softmax": Op(
        "def f(x):\n    return torch.softmax(x, -1)\n",
        ("cells",),
        lambda x: _function("softmax", "LigerSoftmaxFunction")(x),
        2,
        3,
    ),
    "rms_norm": Op(
        f"def f(x, w, eps: float = 1e-6):\n{_NORM.format(x='x')}    return w * h.to(x.dtype)\n",
        ("cells", "columns"),
        lambda x, w: _function("rms_norm", "LigerRMSNormFunction")(x, w, 1e-6, 0.0, "llama", True, None),
        2,
        3,
    ),
    "rms_norm_gemma": Op(
        f"def f(x, w, eps: float = 1e-6):\n{_NORM.format(x='x')}    return ((1.0 + w.float()) * h).to(x.dtype)\n",
        ("cells", "columns"),
        lambda x, w: _function("rms_norm", "LigerRMSNormFunction")(x, w, 1e-6, 1.0, "gemma", True, None),
        2,
        3,
    ),
    "fused_add_rms_norm": Op(
        f"def f(x, r, w, eps: float = 1e-6):\n    s = x + r\n{_NORM.format(x='s')}    return w * h.to(x.dtype), s\n",
        ("cells", "cells", "columns"),
        lambda x, r, w: _function("fused_add_rms_norm", "LigerFusedAddRMSNormFunction")(x, r, w, 1e-6, 0.0, "llama"),
        4,
        4,
    ),
    "layer_norm": Op(
        "def f(x, w, b, eps: float = 1e-6):\n    h = x.float()\n    m = h.mean(-1, keepdim=True)\n"
        "    v = ((h - m) ** 2).mean(-1, keepdim=True)\n"
        "    return ((h - m) * torch.rsqrt(v + eps) * w + b).to(x.dtype)\n",
        ("cells", "columns", "columns"),
        lambda x, w, b: _function("layer_norm", "LigerLayerNormFunction")(x, w, b, 1e-6),
        2,
        3,
    ),
    "dyt": Op(
        "def f(x, alpha, gamma, beta):\n    return gamma * torch.tanh(alpha * x) + beta\n",
        ("cells", "one", "columns", "columns"),
        lambda x, a, g, b: _function("dyt", "LigerDyTFunction")(x, a, g, b),
        2,
        3,
    ),
    "poly_norm": Op(
        "def f(x, w, b, eps: float = 1e-6):\n    def normal(u):\n"
        "        return u * torch.rsqrt(u.pow(2).mean(-1, keepdim=True) + eps)\n\n    h = x.float()\n"
        "    return (w[0] * normal(h**3) + w[1] * normal(h**2) + w[2] * normal(h) + b).to(x.dtype)\n",
        ("cells", "three", "one"),
        lambda x, w, b: _function("poly_norm", "LigerPolyNormFunction")(x, w, b, 1e-6, True),
        2,
        3,
    ),
    "kl_div": Op(
        "def f(x, y):\n    return F.kl_div(x, y, reduction='batchmean')\n",
        ("logits", "target"),
        lambda x, y: _function("kl_div", "LigerKLDivLossFunction")(x, y, "batchmean", False, 1e-10),
        2,
        2,
    ),
    "tvd": Op(
        "def f(x, y):\n    return (0.5 * torch.abs(x - y)).sum(-1).mean()\n",
        ("logits", "target"),
        lambda x, y: _function("tvd", "LigerTVDLossFunction")(x, y, None, "batchmean", -100),
        2,
        3,
    ),
    "jsd": Op(
        "def f(x, y, beta: float = 0.5):\n    p, q = torch.exp(x), torch.exp(y)\n"
        "    log_m = torch.log(beta * q + (1 - beta) * p)\n"
        "    return (beta * q * (y - log_m) + (1 - beta) * p * (x - log_m)).sum() / x.shape[0]\n",
        ("logits", "log_target"),
        lambda x, y: _function("jsd", "LigerJSDFunction")(x, y, None, 0.5, -100),
        2,
        3,
    ),
    "cross_entropy": Op(
        "def f(x, label):\n    return F.cross_entropy(x, label, ignore_index=-100)\n",
        ("cells", "labels"),
        lambda x, label: _function("cross_entropy", "LigerCrossEntropyFunction")(x, label, None)[0],
        1,
        2,
    ),
}

SIZES = [(4096, 4096), (4096, 16384), (65536, 128), (65536, 1024)]
"""Rows and columns: a hidden size, an MLP's width, head sizes, a small hidden size with many rows."""


def make_input(kind: str, rows: int, columns: int) -> torch.Tensor:
    """One argument in bfloat16 on the GPU."""
    shape = {"columns": (columns,), "one": (1,), "three": (3,), "labels": (rows,)}.get(kind, (rows, columns))
    if kind == "labels":
        return torch.randint(0, columns, shape, device="cuda")
    value = torch.randn(shape, device="cuda", dtype=torch.bfloat16)
    if kind in ("logits", "log_target"):
        value = torch.log_softmax(value, -1)
    if kind == "target":
        value = torch.softmax(value, -1)
    return value.requires_grad_(kind in ("cells", "columns", "one", "three", "logits"))


def load_generated(name: str, folder: Path) -> Any:
    """The module that a scaffold has for this op; written once into the folder."""
    path = folder / f"generated_{name}.py"
    if not path.is_file():
        path.write_text(generated_source(name))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def generated_source(name: str) -> str:
    op = OPS[name]
    arguments = op.source.split("(")[1].split(")")[0].split(", ")
    shapes = {"columns": (64,), "one": (1,), "three": (3,), "labels": (8,)}
    inputs = tuple(
        InputSpec(argument, shapes.get(kind, (8, 64)), "int64" if kind == "labels" else "float32", "target" not in kind)
        for argument, kind in zip(arguments, op.inputs, strict=False)
    )
    reference = Reference(HEADER + op.source, "f", name, None, inputs)
    return generate(GenerateRequest(reference, name, "LigerGeneratedFunction")).ops_source


def eager(name: str) -> Callable[..., Any]:
    """The reference as PyTorch runs it."""
    namespace: dict[str, Any] = {}
    exec(HEADER + OPS[name].source, namespace)
    function = namespace["f"]
    assert callable(function)
    return function
