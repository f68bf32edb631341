"""References with rows: what Liger's row kernels compute, and what people write beside it."""

from __future__ import annotations

from tigon_tools.schema.reference import InputSpec, Reference

HEADER = "import torch\nimport torch.nn.functional as F\n\n\n"
ROWS, HIDDEN = (8, 64), (64,)

RMS = "    h = x.float()\n    h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps)\n"


def tensors(**shapes: tuple[int, ...]) -> tuple[InputSpec, ...]:
    return tuple(InputSpec(name, shape) for name, shape in shapes.items())


LABEL = InputSpec("label", (8,), "int64", False)
TARGET = InputSpec("y", ROWS, "float32", False)

ROW_ZOO: dict[str, tuple[str, tuple[InputSpec, ...]]] = {
    "softmax": ("def f(x):\n    return torch.softmax(x, dim=-1)", tensors(x=ROWS)),
    "log_softmax": ("def f(x):\n    return torch.log_softmax(x, dim=-1)", tensors(x=ROWS)),
    "llama_rms_norm": (
        f"def f(x, w, eps: float = 1e-6):\n{RMS}    return w * h.to(x.dtype)",
        tensors(x=(2, 4, 64), w=HIDDEN),
    ),
    "gemma_rms_norm": (
        f"def f(x, w, eps: float = 1e-6):\n{RMS}    return (h * (1.0 + w.float())).to(x.dtype)",
        tensors(x=(2, 4, 64), w=HIDDEN),
    ),
    "layer_norm": (
        "def f(x, w, b, eps: float = 1e-6):\n    m = x.mean(-1, keepdim=True)\n"
        "    v = ((x - m) ** 2).mean(-1, keepdim=True)\n    return (x - m) * torch.rsqrt(v + eps) * w + b",
        tensors(x=ROWS, w=HIDDEN, b=HIDDEN),
    ),
    "torch_layer_norm": (
        "def f(x, w, b):\n    return F.layer_norm(x, (x.shape[-1],), w, b)",
        tensors(x=(2, 4, 64), w=HIDDEN, b=HIDDEN),
    ),
    "dyt": (
        "def f(x, alpha, gamma, beta):\n    return gamma * torch.tanh(alpha * x) + beta",
        tensors(x=(2, 4, 64), alpha=(1,), gamma=HIDDEN, beta=HIDDEN),
    ),
    "fused_add_rms_norm": (
        f"def f(x, r, w, eps: float = 1e-6):\n    x = x + r\n{RMS}    return w * h.to(x.dtype), x",
        tensors(x=(2, 4, 64), r=(2, 4, 64), w=HIDDEN),
    ),
    "variance": (
        "def f(x):\n    return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + 1e-5)",
        tensors(x=ROWS),
    ),
    "vector_norm": ("def f(x):\n    return x / x.norm(dim=-1, keepdim=True).clamp(min=1e-6)", tensors(x=ROWS)),
    "logsumexp": ("def f(x):\n    return torch.logsumexp(x, -1)", tensors(x=ROWS)),
    "largest": ("def f(x):\n    return x / (x.abs().amax(-1, keepdim=True) + 1.0)", tensors(x=ROWS)),
    "distance": ("def f(x, y):\n    return (x - y).abs().sum(-1)", tensors(x=ROWS, y=ROWS)),
    "bias": ("def f(x, b):\n    return F.silu(x + b)", tensors(x=ROWS, b=HIDDEN)),
    "number": ("def f(x, s):\n    return F.silu(x * s)", tensors(x=ROWS, s=())),
    "row_scale": ("def f(x, s):\n    return F.silu(x * s.unsqueeze(-1))", tensors(x=ROWS, s=(8,))),
    "masked_softmax": (
        "def f(x, mask):\n    return torch.softmax(x.masked_fill(mask, -1e4), -1)",
        (*tensors(x=ROWS), InputSpec("mask", ROWS, "bool", False)),
    ),
    "kl_div": ("def f(x, y):\n    return F.kl_div(x, y, reduction='batchmean')", (*tensors(x=ROWS), TARGET)),
    "total_variation": (
        "def f(x, y):\n    return (0.5 * torch.abs(x - y)).sum(-1).mean()",
        (*tensors(x=ROWS), TARGET),
    ),
    "jensen_shannon": (
        "def f(x, y, beta: float = 0.5):\n    p, q = torch.exp(x), torch.exp(y)\n"
        "    log_m = torch.log(beta * p + (1 - beta) * q)\n"
        "    return (beta * p * (x - log_m) + (1 - beta) * q * (y - log_m)).sum() / x.shape[0]",
        (*tensors(x=ROWS), TARGET),
    ),
    "poly_norm": (
        "def f(x, w, b, eps: float = 1e-6):\n    def normal(u):\n"
        "        return u * torch.rsqrt(u.pow(2).mean(-1, keepdim=True) + eps)\n\n"
        "    h = x.float()\n"
        "    return (w[0] * normal(h**3) + w[1] * normal(h**2) + w[2] * normal(h) + b).to(x.dtype)",
        tensors(x=(2, 4, 64), w=(3,), b=(1,)),
    ),
    "labelled_total_variation": (
        "def f(x, y, label, ignore_index: int = -100):\n    kept = label != ignore_index\n"
        "    total = torch.where(kept.unsqueeze(1), 0.5 * torch.abs(x - y), 0.0)\n"
        "    return total.sum() / kept.sum().clamp(min=1)",
        (*tensors(x=ROWS), TARGET, LABEL),
    ),
    "labelled_elements": (
        "def f(x, label, ignore_index: int = -100):\n"
        "    return torch.where((label != ignore_index).unsqueeze(1), F.silu(x), 0.0)",
        (*tensors(x=ROWS), LABEL),
    ),
    "mse": ("def f(x, y):\n    return F.mse_loss(x, y)", tensors(x=ROWS, y=ROWS)),
    "cross_entropy": (
        "def f(x, label):\n    return F.cross_entropy(x, label, ignore_index=-100)",
        (*tensors(x=ROWS), LABEL),
    ),
    "z_loss": (
        "def f(x, label):\n    lse = torch.logsumexp(x.float(), -1)\n"
        "    picked = torch.gather(x.float(), -1, label.unsqueeze(-1)).squeeze(-1)\n"
        "    return (lse - picked + 1e-4 * lse**2).mean()",
        (*tensors(x=ROWS), LABEL),
    ),
    "smoothed_cross_entropy": (
        "def f(x, label, ignore_index: int = -100, smoothing: float = 0.1, softcap: float = 30.0):\n"
        "    h = softcap * torch.tanh(x.float() / softcap)\n    kept = label != ignore_index\n"
        "    picked = torch.gather(h, -1, torch.where(kept, label, 0).unsqueeze(-1)).squeeze(-1)\n"
        "    loss = torch.logsumexp(h, -1) - (1.0 - smoothing) * picked - smoothing * h.mean(-1)\n"
        "    return (torch.where(kept, loss, 0.0).sum() / kept.sum().clamp(min=1)).to(x.dtype)",
        (*tensors(x=ROWS), LABEL),
    ),
    "entropy": (
        "def f(x):\n    return -(torch.softmax(x, -1) * torch.log_softmax(x, -1)).sum(-1).mean()",
        tensors(x=ROWS),
    ),
    "module": (
        "class f(torch.nn.Module):\n    def __init__(self, hidden: int = 64, eps: float = 1e-5):\n"
        "        super().__init__()\n        self.weight = torch.nn.Parameter(torch.ones(hidden))\n        self.eps = eps\n\n"
        "    def forward(self, x):\n"
        "        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight",
        tensors(x=(2, 4, 64)),
    ),
}


def row_reference(name: str) -> Reference:
    code, inputs = ROW_ZOO[name]
    return Reference(HEADER + code + "\n", "f", name, None, inputs)
