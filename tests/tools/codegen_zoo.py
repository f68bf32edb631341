"""References for the tests of code generation, and what it takes to run what is generated from them."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from tigon_tools.codegen.generate_job import run
from tigon_tools.interpreter import activate
from tigon_tools.schema.generate import GenerateRequest, GenerateResult
from tigon_tools.schema.reference import InputSpec, Reference

activate()

HEADER = "import torch\nimport torch.nn.functional as F\n\n\n"

# Each shows something the others do not: what, is said by the name or the comment.
ZOO = {
    "relu_squared": "def f(x):\n    return torch.square(F.relu(x))",
    "swiglu": "def f(a, b, gate_multiplier: float = 1.5):\n    c = F.silu(gate_multiplier * a) * b\n    return c",
    "geglu": 'def f(a, b):\n    c = F.gelu(a, approximate="tanh") * b\n    return c',
    "gelu_exact": "def f(x):\n    return F.gelu(x)",
    "mish": "def f(x):\n    return F.mish(x)",
    # an input called y: the output needs another name
    "softplus_mul": "def f(x, y):\n    return F.softplus(x) * y",
    # two outputs, one of them part of the other; scalars that bound
    "clamped_glu": (
        "def f(gate, up, alpha: float = 1.702, limit: float = 2.0):\n"
        "    gate = gate.clamp(max=limit)\n"
        "    up = up.clamp(min=-limit, max=limit)\n"
        "    glu = gate * torch.sigmoid(alpha * gate)\n"
        "    out = (up + 1) * glu\n"
        "    return out, glu"
    ),
    # a scalar without a default
    "swish": "def f(x, alpha: float):\n    return x * torch.sigmoid(alpha * x)",
    "cast_before": "def f(a, b):\n    return (a.float() * b.float()).to(a.dtype)",
    "cast_between": "def f(a, b):\n    return F.silu(a.float()).to(a.dtype) * b",
    # an input called mask, which is what the kernel calls its own
    "masked": "def f(x, mask):\n    return torch.where(mask, x * x, 0.5)",
    "powers": "def f(x):\n    return x.abs() ** 1.5 + x**3 - x.abs() ** 2.5",
    # the partitioner keeps a mask instead of the input
    "leaky_relu": "def f(x, negative_slope: float = 0.01):\n    return F.leaky_relu(x, negative_slope)",
    "elu": "def f(x):\n    return F.elu(x, alpha=1.5)",
    "hardswish": "def f(x):\n    return F.hardswish(x)",
    "three_in_two_out": ("def f(a, b, c):\n    y = a * torch.tanh(b) + c\n    z = torch.exp(a) * c\n    return y, z"),
    # a named output beside one without a name
    "named_y": "def f(x):\n    y = x * x\n    return y, y * x",
    "divide": "def f(a, b):\n    return a / (b * b + 1)",
    "tie": "def f(a, b):\n    return torch.maximum(a, b) * torch.minimum(a, b)",
    # gradients that are the upstream gradient itself, or none
    "sum": "def f(a, b):\n    return a + b",
    "product_sum": "def f(a, b, c):\n    return a * b + c",
    "step_gate": "def f(x, y):\n    return x.sign() * y",
    "index": "def f(x, index):\n    return x * index + index",
    "whole_scalar": "def f(x, n: int = 3):\n    return x * n + n",
    "whole_power": "def f(x, n: int = 2):\n    return x.abs() ** n",
    "not_differentiable": "def f(x):\n    y = x * 2\n    positive = x > 0.5\n    return y, positive",
    # output saved instead of the input
    "exp_sum": "def f(a, b):\n    return torch.exp(a + b)",
    "weight": "def f(x, weight):\n    return x * weight",
    "column": "def f(x, row_scale):\n    return x * row_scale.unsqueeze(-1)",
    "logs": ("def f(x):\n    z = x.abs() + 0.5\n    return torch.log1p(z) + z.log() + z.log2() + z.log10()"),
    "waves": "def f(x):\n    return torch.sin(x) * torch.cos(2 * x) + torch.atan(x) + torch.asinh(x)",
    "hyperbolic": (
        "def f(x):\n    z = 0.3 * x\n    return torch.sinh(z) + torch.cosh(z) * torch.expm1(z) + torch.erfc(z)"
    ),
    "two_arguments": (
        "def f(x, y):\n"
        "    angle = torch.atan2(x, y) + torch.hypot(x, y)\n"
        "    return angle + torch.copysign(x, y) + torch.logaddexp(x, y)"
    ),
    "steps": "def f(x):\n    return x * torch.floor(x) + torch.round(x) * 0.5 + torch.fmod(x, 1.5) + x.sign()",
    "interpolate": "def f(x, y, weight: float = 0.3):\n    return torch.lerp(x, y, weight) + torch.addcmul(x, x, y)",
    "shrinks": (
        "def f(x):\n"
        "    shrunk = F.hardshrink(x) + F.softshrink(x) + F.tanhshrink(x) + F.threshold(x, 0.1, 2.0)\n"
        "    soft = F.softsign(x) + F.logsigmoid(x) + F.selu(x) + F.celu(x)\n"
        "    return shrunk + soft + F.hardsigmoid(x) + F.relu6(x) + torch.special.ndtr(x) + torch.frac(x)"
    ),
    "losses": (
        "def f(x, y):\n"
        "    smooth = F.smooth_l1_loss(x, y, reduction='none') + F.huber_loss(x, y, reduction='none')\n"
        "    squared = F.mse_loss(x, y, reduction='none')\n"
        "    return smooth + squared + F.binary_cross_entropy_with_logits(x, y, reduction='none')"
    ),
    "remainders": "def f(x, y):\n    return torch.xlogy(x, y.abs()) + torch.fmax(x, y) + torch.remainder(x, 1.5)",
    "taken_names": (
        "def f(x, dx, n_cols, y: float = 2.0):\n    grid = x * dx\n    shape = grid * n_cols\n    return grid + y, shape"
    ),
    "mask_first": "def f(x):\n    return x > 0.5, torch.sin(x) * 2",
    "number_by_mask": "def f(x, a: float = 0.3):\n    return x * torch.where(x > 0.5, 1.0, a)",
    "one_of_two": "def f(x, y):\n    return x * y.detach()",
    "deep": "def f(x):\n    for step in range(70):\n        x = torch.sin(x) + 0.01 * step\n    return x",
    "static": "def f(x, squared: bool = True):\n    if squared:\n        x = x * x\n    return x + 1",
}

BROADCAST = {"weight": (-1,), "row_scale": (0,)}
"""Inputs without a gradient that are smaller than the iteration space: the dimensions they have."""

WHOLE = {"index"}


def reference(name: str, code: str | None = None, shape: tuple[int, ...] = (3, 16)) -> Reference:
    body = ZOO[name] if code is None else code
    function = next(node for node in ast.parse(body).body if isinstance(node, ast.FunctionDef))
    inputs = []
    for argument in function.args.args:
        if argument.annotation is None:
            inputs.append(_input(argument.arg, shape))
    return Reference(HEADER + body + "\n", "f", name, None, tuple(inputs))


def _input(name: str, shape: tuple[int, ...]) -> InputSpec:
    if name == "mask":
        return InputSpec(name, shape, "bool", requires_grad=False)
    if name in WHOLE:
        return InputSpec(name, shape, "int64", requires_grad=False)
    if name in BROADCAST:
        return InputSpec(name, tuple(shape[dim] for dim in BROADCAST[name]), requires_grad=False)
    return InputSpec(name, shape)


def generate(name: str, code: str | None = None) -> GenerateResult:
    return run(GenerateRequest(reference(name, code), name, "LigerTestFunction"), lambda line, share: None)


def import_source(text: str, folder: Path, name: str) -> ModuleType:
    """The generated text as a module; from a file, because Triton reads kernels' source."""
    path = folder / f"generated_{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def function(name: str, code: str | None = None) -> Any:
    """The reference as a Python function."""
    namespace: dict[str, Any] = {}
    exec(HEADER + (ZOO[name] if code is None else code), namespace)
    return namespace["f"]


def examples(name: str, shape: tuple[int, ...], dtype: torch.dtype, seed: int = 0) -> list[Any]:
    """Arguments for a call: tensors that need a gradient where the reference has one; 1.7 for a scalar."""
    generator = torch.Generator().manual_seed(seed)
    node = next(item for item in ast.parse(ZOO[name]).body if isinstance(item, ast.FunctionDef))
    values: list[Any] = []
    for argument in node.args.args:
        if argument.annotation is not None:
            if ast.unparse(argument.annotation) != "bool":
                values.append(3 if ast.unparse(argument.annotation) == "int" else 1.7)
            continue
        spec = _input(argument.arg, shape)
        if spec.dtype == "bool":
            values.append(torch.rand(spec.shape or (), generator=generator) > 0.5)
        elif spec.dtype == "int64":
            values.append(torch.randint(-5, 5, spec.shape or (), generator=generator))
        else:
            value = (3 * torch.randn(spec.shape or (), generator=generator)).to(dtype)
            values.append(value.requires_grad_(spec.requires_grad))
    return values


def copies(arguments: list[Any], dtype: torch.dtype) -> list[Any]:
    """The same numbers in another dtype, as leaves of their own."""
    copied: list[Any] = []
    for value in arguments:
        if isinstance(value, torch.Tensor):
            floating = value.is_floating_point()
            copy = value.detach().to(dtype).clone() if floating else value.clone()
            copied.append(copy.requires_grad_(value.requires_grad))
        else:
            copied.append(value)
    return copied


def outputs_of(result: Any) -> list[torch.Tensor]:
    return list(result) if isinstance(result, tuple) else [result]


def gradients_of(arguments: list[Any]) -> list[torch.Tensor]:
    return [v.grad for v in arguments if isinstance(v, torch.Tensor) and v.requires_grad and v.grad is not None]
