"""References for the tests of tracing."""

from __future__ import annotations

import torch

from tigon_tools.schema.reference import InputSpec, Reference

HEADER = "import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n"

# Limits are exact in bfloat16, in which graphs are traced: an element beside one must not change sides.
POINTWISE = {
    "relu_squared": "def f(x):\n    return torch.relu(x) ** 2",
    "swiglu": "def f(a, b, gate_multiplier: float = 1.5):\n    return F.silu(gate_multiplier * a) * b",
    "geglu": 'def f(a, b):\n    return F.gelu(a, approximate="tanh") * b',
    "gelu": "def f(x):\n    return F.gelu(x)",
    "mish": "def f(x):\n    return F.mish(x)",
    "softplus_mul": "def f(x, y):\n    return F.softplus(x) * y",
    "softplus_scalars": "def f(x, beta: float = 2.0, threshold: float = 3.0):\n    return F.softplus(x, beta, threshold)",
    "clamped_glu": (
        "def f(gate, up, limit: float = 0.75, alpha: float = 1.702):\n    gate = gate.clamp(max=limit)\n"
        "    up = up.clamp(-limit, limit)\n    glu = gate * torch.sigmoid(alpha * gate)\n    return (up + 1) * glu, glu"
    ),
    "swish": "def f(x, alpha: float = 1.25):\n    return x * torch.sigmoid(alpha * x)",
    "leaky_relu": "def f(x, slope: float = 0.1):\n    return F.leaky_relu(x, slope)",
    "elu": "def f(x, alpha: float = 1.3):\n    return F.elu(x, alpha)",
    "celu": "def f(x, alpha: float = 1.3):\n    return F.celu(x, alpha)",
    "hardtanh": "def f(x, lo: float = -0.5, hi: float = 0.75):\n    return F.hardtanh(x, lo, hi)",
    "threshold": "def f(x, t: float = 0.125, v: float = 0.3):\n    return F.threshold(x, t, v) * x",
    "softshrink": "def f(x, lambd: float = 0.375):\n    return F.softshrink(x, lambd)",
    "hardswish": "def f(x):\n    return F.hardswish(x)",
    "logsigmoid": "def f(x):\n    return F.logsigmoid(x)",
    "power": "def f(x, p: float = 1.5):\n    return x.abs() ** p",
    "where": "def f(x, limit: float = 0.25):\n    return torch.where(x > limit, x * x, limit * x)",
    "addcmul": "def f(x, y, value: float = 0.3):\n    return torch.addcmul(x, x, y, value=value)",
    "derived": "def f(x, alpha: float = 1.25):\n    return x * (alpha * alpha + 1.0) / (2.0 - alpha)",
    "cast": "def f(a, b):\n    return F.silu(a.float()).to(a.dtype) * b",
    "module": (
        "class f(nn.Module):\n    def __init__(self, alpha: float = 0.7):\n        super().__init__()\n        self.alpha = alpha\n"
        "    def forward(self, x):\n        return x * torch.tanh(self.alpha * x)"
    ),
}

OTHERS = {
    "softmax": ("def f(x):\n    return torch.softmax(x, dim=-1)", 2),
    "log_softmax": ("def f(x):\n    return F.log_softmax(x, dim=-1)", 2),
    "rms_norm": (
        "def f(x, w, eps: float = 1e-6):\n    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * w",
        2,
    ),
    "layer_norm": ("def f(x, w, b):\n    return F.layer_norm(x, (x.shape[-1],), w, b)", 2),
    "l1_distance": ("def f(x, y):\n    return (x - y).abs().sum(-1)", 2),
    "matmul": ("def f(x, w):\n    return x @ w.transpose(-1, -2)", 3),
    "cumsum": ("def f(x):\n    return torch.cumsum(x, -1)", 3),
    "sort": ("def f(x):\n    return torch.sort(x, -1)[0] * 2", 3),
    "over_rows": ("def f(x):\n    return x - x.mean(0, keepdim=True)", 3),
    "glu": ("def f(x):\n    a, b = x.chunk(2, -1)\n    return a * torch.sigmoid(b)", 1),
    "dyt": ("def f(x, gamma, beta, alpha: float = 0.5):\n    return torch.tanh(alpha * x) * gamma + beta", 1),
}
"""Code and the tier by the design's rules."""


def reference(code: str, inputs: tuple[InputSpec, ...] | None = None, entry: str = "f") -> Reference:
    return Reference(HEADER + code + "\n", entry, inputs=inputs)


def vector_inputs(*names: str) -> tuple[InputSpec, ...]:
    """Activations, and parameters of a row's length."""
    return tuple(InputSpec(n, (16,) if n in ("w", "b", "gamma", "beta") else (4, 16)) for n in names)


def random_like(shape: tuple[int, ...], dtype: torch.dtype, seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)
