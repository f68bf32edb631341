"""Liger's names for a kernel: `relu_squared` is `LigerReLUSquared`, `liger_relu_squared`."""

from __future__ import annotations

import re
from collections.abc import Mapping

WORDS = {
    "relu": "ReLU", "silu": "SiLU", "gelu": "GELU", "elu": "ELU", "selu": "SELU", "celu": "CELU", "glu": "GLU",
    "swiglu": "SwiGLU", "geglu": "GEGLU", "reglu": "ReGLU", "rms": "RMS", "rmsnorm": "RMSNorm", "dyt": "DyT",
    "kl": "KL", "jsd": "JSD", "tvd": "TVD", "grpo": "GRPO", "mlp": "MLP", "moe": "MoE", "mhc": "MHC", "lm": "LM",
    "softplus": "Softplus", "rope": "Rope", "ce": "CE", "kldiv": "KLDiv", "qkv": "QKV", "dpo": "DPO",
}  # fmt: skip
"""Words that Liger does not write as `Capitalised`; `Rope` it does."""

OPERATION_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


def pascal(operation_name: str, words: Mapping[str, str] = WORDS) -> str:
    """`relu_squared` as `ReLUSquared`."""
    return "".join(words.get(word, word.capitalize()) for word in operation_name.split("_"))


def class_names(
    operation_name: str, exported_ops: Mapping[str, str], exported_modules: Mapping[str, str]
) -> tuple[str, str]:
    """Of the Function and the module: `LigerReLUSquaredFunction`, `LigerReLUSquared`.

    Plainly capitalised where another kernel has such a name: Liger's `swiglu` exports
    `LigerSiLUMulFunction`, so an operation `silu_mul` beside it gets `LigerSiluMulFunction`.
    """
    usual = f"Liger{pascal(operation_name)}"
    owners = (exported_ops.get(f"{usual}Function"), exported_modules.get(usual))
    if any(owner not in (None, operation_name) for owner in owners):
        usual = f"Liger{pascal(operation_name, {})}"
    return f"{usual}Function", usual


def functional(operation_name: str) -> str:
    return f"liger_{operation_name}"
