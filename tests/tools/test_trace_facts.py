"""Tiers, formulas and figures: what a profile is filled from."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from trace_zoo import OTHERS, POINTWISE, random_like, reference, vector_inputs

from tigon_tools.schema.reference import InputSpec
from tigon_tools.trace.closest import SIGNATURES
from tigon_tools.trace.reference import load
from tigon_tools.trace.trace_job import trace_reference


@pytest.mark.parametrize("name", OTHERS)
def test_the_tier_follows_from_the_graph(name: str) -> None:
    code, tier = OTHERS[name]
    names = [part.split(":")[0].strip() for part in code.split("(", 1)[1].split(")")[0].split(",")]
    tensors = tuple(n for n in names if n not in ("eps", "alpha"))
    inputs = vector_inputs(*tensors) if name != "matmul" else (InputSpec("x", (4, 16)), InputSpec("w", (8, 16)))
    _, facts = trace_reference(reference(code, inputs))
    assert facts.tier == tier, facts.evidence
    assert facts.evidence and all("aten." in e.sentence or "gradient" in e.sentence for e in facts.evidence)
    assert all(SIGNATURES[kernel][0] == tier for kernel in facts.closest_kernels)
    if name == "dyt":
        assert any("reduction over rows" in e.sentence for e in facts.evidence)


@pytest.mark.parametrize("name", POINTWISE)
def test_point_wise_references_are_tier_1_and_generated(name: str) -> None:
    _, facts = trace_reference(reference(POINTWISE[name]))
    assert (facts.tier, facts.tier_description) == (1, "element-wise")
    assert facts.generates, facts.generates_not_because


@pytest.mark.parametrize(
    ("name", "closest"), [("relu_squared", "relu_squared"), ("swiglu", "swiglu"), ("geglu", "geglu")]
)
def test_a_kernel_that_liger_has_is_closest_to_itself(name: str, closest: str) -> None:
    assert trace_reference(reference(POINTWISE[name]))[1].closest_kernels[0] == closest


_FUNCTIONS: dict[str, Any] = {
    "relu": lambda x: x.relu(),
    "silu": lambda x: x * torch.sigmoid(x),
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "exp": torch.exp,
    "expm1": torch.expm1,
    "log1p": torch.log1p,
    "erf": torch.erf,
    "abs": torch.abs,
    "sign": torch.sign,
    "where": lambda c, x, y: torch.where(
        torch.as_tensor(c), torch.as_tensor(x, dtype=torch.float64), torch.as_tensor(y, dtype=torch.float64)
    ),
    "minimum": lambda x, y: torch.minimum(
        torch.as_tensor(x, dtype=torch.float64), torch.as_tensor(y, dtype=torch.float64)
    ),
    "min": lambda x, y: torch.clamp(x, max=y),
    "max": lambda x, y: torch.clamp(x, min=y),
    "clamp": lambda x, lo, hi: torch.clamp(x, lo, hi),
    "gelu": lambda x, approximate="none": torch.nn.functional.gelu(x, approximate=str(approximate)),
    "dtype": torch.float64,
    "float32": torch.float64,
    "none": "none",
    "logical_not": torch.logical_not,
    "ge": torch.ge,
}


@pytest.mark.parametrize("name", [n for n in POINTWISE if n not in ("geglu", "cast")])
def test_formulas_are_right_as_written(name: str) -> None:
    """The formulas are evaluated as Python and compared with autograd in float64."""
    loaded = load(reference(POINTWISE[name]))
    _, facts = trace_reference(loaded.reference)
    values: dict[str, Any] = {}
    for seed, spec in enumerate(loaded.arguments):
        is_tensor = spec.kind not in ("scalar", "static")
        values[spec.name] = random_like((5, 7), torch.float64, seed).requires_grad_() if is_tensor else spec.value
    expected = loaded.call(values)
    upstream = [random_like(tuple(o.shape), torch.float64, 50 + i) for i, o in enumerate(expected)]
    wants = [n for n, v in values.items() if isinstance(v, torch.Tensor)]
    right = torch.autograd.grad(expected, [values[n] for n in wants], upstream)

    known = {**_FUNCTIONS, **{n: v.detach() if isinstance(v, torch.Tensor) else v for n, v in values.items()}}
    for symbol, formula in facts.forward_formulas.items():
        known[symbol] = eval(formula, {"__builtins__": {}}, known)
    for output, want in zip(facts.outputs, expected, strict=True):
        torch.testing.assert_close(known[output.symbol], want.detach(), rtol=1e-5, atol=1e-6)
    for output, gradient in zip(facts.outputs, upstream, strict=True):
        known[f"d{output.symbol}"] = gradient
    for symbol, formula in facts.gradient_formulas.items():
        known[symbol] = eval(formula, {"__builtins__": {}}, known)
    for n, want in zip(wants, right, strict=True):
        torch.testing.assert_close(known[f"d{n}"] + torch.zeros(5, 7, dtype=torch.float64), want, rtol=1e-5, atol=1e-6)


def test_bytes_and_flops_are_those_of_the_shapes() -> None:
    """swiglu at 8 x 32 in bfloat16: two inputs and one output; backward three read and two written."""
    elements = 8 * 32
    _, facts = trace_reference(reference(POINTWISE["swiglu"], (InputSpec("a", (8, 32)), InputSpec("b", (8, 32)))))
    assert facts.min_bytes_forward == 3 * elements * 2
    assert facts.min_bytes_backward == 5 * elements * 2
    assert facts.saved_bytes == 2 * elements * 2
    # Eager keeps gate_multiplier * a, silu of it, and b.
    assert facts.eager_saved_bytes == 3 * elements * 2
    # multiply, sigmoid, multiply, multiply.
    assert facts.flops_forward == 4 * elements
    assert math.prod(facts.iteration_space) == elements


def test_precision_sensitive_ops_are_named() -> None:
    assert trace_reference(reference(POINTWISE["swiglu"]))[1].precision_sensitive_ops == ("sigmoid",)
    code, _ = OTHERS["rms_norm"]
    sensitive = trace_reference(reference(code, vector_inputs("x", "w")))[1].precision_sensitive_ops
    assert {"pow", "mean", "rsqrt"} <= set(sensitive)


def test_a_loss_keeps_numbers_of_the_row_and_no_second_copy_of_the_logits() -> None:
    code = "def f(x, label):\n    return F.cross_entropy(x, label)"
    inputs = (InputSpec("x", (16, 512)), InputSpec("label", (16,), "int64", False))
    _, facts = trace_reference(reference(code, inputs))
    assert facts.saved_tensors[:2] == ("x", "label")
    logits, labels, row = 16 * 512 * 2, 16 * 8, 16 * 4
    assert facts.saved_bytes <= logits + labels + 2 * row + 4
    assert "log_softmax(x)" in facts.forward_formulas["Y"]


def test_an_output_that_the_backward_needs_is_not_kept_twice() -> None:
    _, facts = trace_reference(reference(OTHERS["log_softmax"][0], vector_inputs("x")))
    assert facts.saved_tensors == ("Y",)
    assert facts.forward_formulas == {"Y": "log_softmax(x)"}
