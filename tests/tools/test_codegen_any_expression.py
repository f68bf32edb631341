"""Property: whatever point-wise expression one writes, the kernel computes it and its gradient."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch
from codegen_zoo import function, generate, import_source
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

LEAVES = st.sampled_from("x|y|x + y|s * x|y - s|-s * y|(s * s) * x|x + 2|1 - y|0.5 * x|y / 3|1.0 * x|x + 0".split("|"))
"""Tensors, with scalars and constants in every position; the last two are no operations at all."""

# Functions that are smooth where they are used, so that float32 can be held against float64.
UNARY = st.sampled_from(
    "-{0}|{0}**2|{0}**3|torch.tanh({0})|torch.sigmoid({0})|torch.sin({0})|torch.exp(-{0}**2)|F.silu({0})"
    "|torch.sqrt({0}**2 + 1)|1 / ({0}**2 + 1)|torch.log1p({0}**2)|F.softplus({0})|torch.erf({0})|F.gelu({0})"
    '|F.gelu({0}, approximate="tanh")|torch.atan({0})|F.mish({0})|torch.rsqrt({0}**2 + 0.5)'.split("|")
)
BINARY = st.sampled_from(
    "{0} + {1}|{0} - {1}|{0} * {1}|{0} / ({1}**2 + 1)|torch.where(x > y, {0}, {1})|torch.maximum({0}, {1})"
    "|torch.minimum({0}, {1})|torch.addcmul(x, {0}, {1})|torch.hypot({0}, {1}**2 + 1)".split("|")
)


def combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    part = inner.map("({})".format)
    return st.builds(str.format, UNARY, part) | st.builds(str.format, BINARY, part, part)


EXPRESSIONS = st.recursive(LEAVES, combined, max_leaves=6)
ALLOWED = 2e-4
"""Relative to the largest value: float32 through a handful of operations, cancellation included."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("expressions")


counter = itertools.count()


@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(text=EXPRESSIONS)
def test_kernel_and_autograd_agree(text: str, folder: Path) -> None:
    code = f"def f(x, y, s: float = 0.7):\n    z = x * y * s\n    return z + ({text})"
    module = import_source(generate("expression", code).ops_source, folder, f"expression_{next(counter)}")
    generator = torch.Generator().manual_seed(3)
    x, y = (torch.randn(2, 23, generator=generator).requires_grad_() for _ in range(2))
    exact = [tensor.detach().double().requires_grad_() for tensor in (x, y)]
    ours = module.LigerTestFunction.apply(x, y, 0.7)
    right = function("expression", code)(*exact, 0.7)
    upstream = torch.randn(right.shape, generator=generator)
    ours.backward(upstream)
    right.backward(upstream.double())
    for found, expected in ((ours, right), (x.grad, exact[0].grad), (y.grad, exact[1].grad)):
        assert found is not None
        assert expected is not None
        scale = expected.abs().max().clamp(min=1.0)
        assert (found.double() - expected).abs().max() <= ALLOWED * scale, code
