"""Generated kernels against PyTorch in float64, in Triton's interpreter.

The error allowed is a small multiple of what PyTorch itself makes in the same dtype.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from codegen_zoo import ZOO, copies, examples, function, generate, gradients_of, import_source, outputs_of

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ModuleType]:
    """Generated once for all tests of this file, at the first use."""
    return _Modules(tmp_path_factory.mktemp("generated"))


class _Modules(dict[str, ModuleType]):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def __missing__(self, name: str) -> ModuleType:
        self[name] = import_source(generate(name).ops_source, self._folder, name)
        return self[name]


def backward(outputs: list[torch.Tensor], upstream: list[torch.Tensor]) -> None:
    pairs = [(o, g) for o, g in zip(outputs, upstream, strict=True) if o.requires_grad]
    torch.autograd.backward([o for o, _ in pairs], [g.to(o.dtype) for o, g in pairs])


def check(name: str, module: ModuleType, arguments: list[Any], expand_gradient: bool = False) -> None:
    """Outputs and gradients are as near to float64 as PyTorch's own in this dtype, or nearly so."""
    dtype = next(v.dtype for v in arguments if isinstance(v, torch.Tensor) and v.is_floating_point())
    exact, eager = copies(arguments, torch.float64), copies(arguments, dtype)
    reference = function(name)
    if name in ("cast_before", "cast_between"):  # a cast to float32 would round in the exact run
        exact = copies(arguments, torch.float64)
        reference = {
            "cast_before": lambda a, b: a * b,
            "cast_between": lambda a, b: torch.nn.functional.silu(a) * b,
        }[name]
    runs = []
    for run, values in ((module.LigerTestFunction.apply, arguments), (function(name), eager), (reference, exact)):
        outputs = outputs_of(run(*values))
        generator = torch.Generator().manual_seed(1)
        if expand_gradient:
            upstream = [torch.ones(()).expand(o.shape) for o in outputs]
        else:
            upstream = [torch.randn(o.shape, generator=generator).to(dtype) for o in outputs]
        backward(outputs, upstream)
        runs.append([*outputs, *gradients_of(values)])
    assert len(runs[0]) == len(runs[2])
    for ours, eagers, exacts in zip(*runs, strict=True):
        assert ours.dtype == eagers.dtype
        assert ours.shape == exacts.shape
        if exacts.numel() == 0:
            continue
        ours, eagers, exacts = ours.double(), eagers.double(), exacts.double()
        rounding = torch.finfo(dtype).eps * exacts.abs().max()
        allowed = 2 * (eagers - exacts).abs().max() + 2 * rounding
        assert (ours - exacts).abs().max() <= allowed


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ZOO)
def test_values_and_gradients_are_those_of_the_reference(name: str, dtype: str, modules: dict[str, ModuleType]) -> None:
    check(name, modules[name], examples(name, (5, 37), DTYPES[dtype]))


# One row, zero rows, no columns, one element, no dimensions; prime; past one block of 2048.
@pytest.mark.parametrize("shape", [(1, 7), (0, 16), (4, 0), (1,), (), (2, 3, 11), (3, 2731), (9001,)])
def test_every_shape_is_covered(shape: tuple[int, ...], modules: dict[str, ModuleType]) -> None:
    check("swiglu", modules["swiglu"], examples("swiglu", shape, torch.float32))


def test_rows_with_a_stride_of_their_own_are_read_where_they_are(modules: dict[str, ModuleType]) -> None:
    whole = torch.randn(3, 5, 2 * 37)
    a, b = (half.detach().requires_grad_() for half in whole.chunk(2, dim=-1))
    check("swiglu", modules["swiglu"], [a, b, 1.5])
    _, (rows, _) = modules["swiglu"]._as_rows(a, b)
    assert rows.data_ptr() == whole.data_ptr()
    assert rows.stride() == (2 * 37, 1)


@pytest.mark.parametrize(
    "layout",
    [
        lambda x: x.t(),
        lambda x: x[:, ::2],
        lambda x: x[::2],
        lambda x: x[:, 1:],
        lambda x: x[:1].expand(4, -1),
        lambda x: x[:, :1].expand(-1, 6),
        lambda x: x.reshape(2, 2, 2, 3).transpose(1, 2),
    ],
)
def test_any_layout_gives_the_same(layout: Any, modules: dict[str, ModuleType]) -> None:
    a = layout(torch.randn(4, 6)).detach().requires_grad_()
    b = torch.randn(a.shape).requires_grad_()
    check("swiglu", modules["swiglu"], [a, b, 1.5])


@pytest.mark.parametrize("name", ["swiglu", "clamped_glu", "relu_squared", "sum"])
def test_an_upstream_gradient_of_stride_zero(name: str, modules: dict[str, ModuleType]) -> None:
    check(name, modules[name], examples(name, (3, 10), torch.float32), expand_gradient=True)


def test_inputs_and_the_upstream_gradient_are_left_alone(modules: dict[str, ModuleType]) -> None:
    a, b, _ = examples("swiglu", (4, 19), torch.float32)
    c = modules["swiglu"].LigerTestFunction.apply(a, b, 1.5)
    upstream = torch.randn(c.shape)
    before = [tensor.detach().clone() for tensor in (a, b, upstream)]
    c.backward(upstream)
    for tensor, copy in zip((a, b, upstream), before, strict=True):
        assert torch.equal(tensor, copy)


def test_mixed_dtypes_come_out_as_in_eager(modules: dict[str, ModuleType]) -> None:
    a = torch.randn(4, 8, dtype=torch.bfloat16, requires_grad=True)
    b = torch.randn(4, 8, dtype=torch.float32, requires_grad=True)
    c = modules["swiglu"].LigerTestFunction.apply(a, b, 1.0)
    assert c.dtype == function("swiglu")(a, b, 1.0).dtype == torch.float32
    c.sum().backward()
    assert (a.grad.dtype, b.grad.dtype) == (torch.bfloat16, torch.float32)


def test_an_explicit_cast_rounds_there_and_an_implicit_one_does_not(modules: dict[str, ModuleType]) -> None:
    a = torch.linspace(-3, 3, 64, dtype=torch.bfloat16)
    b = torch.full((64,), 1.0 + 2**-7, dtype=torch.bfloat16)
    silu = torch.nn.functional.silu(a.float())
    cast = modules["cast_between"].LigerTestFunction.apply(a, b)
    torch.testing.assert_close(cast, (silu.bfloat16().float() * b.float()).bfloat16(), rtol=0, atol=0)
    free = modules["swiglu"].LigerTestFunction.apply(a, b, 1.0)
    torch.testing.assert_close(free, (silu * b.float()).bfloat16(), rtol=0, atol=0)
    assert not torch.equal(cast, free)


# Where a formula taken literally overflows, underflows or cancels.
FINITE = (0.0, -0.0, 1e-30, -1e-30, 1e-8, 20.0, -20.0, 88.0, -88.0, 200.0, -200.0, 1e30)
EXTREMES = torch.tensor([*FINITE, float("inf"), float("-inf"), float("nan")])


@pytest.mark.parametrize("name", ["softplus_mul", "mish", "geglu", "relu_squared", "elu", "clamped_glu", "hardswish"])
def test_extreme_values_come_out_as_in_eager(name: str, modules: dict[str, ModuleType]) -> None:
    ours, eager = ([EXTREMES.clone().requires_grad_()] for _ in range(2))
    for values in (ours, eager):
        values += [torch.ones_like(EXTREMES).requires_grad_() for _ in range(name in TWO_INPUTS)]
    for run, values in ((modules[name].LigerTestFunction.apply, ours), (function(name), eager)):
        outputs = outputs_of(run(*values))
        backward(outputs, [torch.ones_like(o) for o in outputs])
        values += outputs
    torch.testing.assert_close(ours[-1], eager[-1], rtol=1e-5, atol=1e-30, equal_nan=True)
    torch.testing.assert_close(ours[0].grad, eager[0].grad, rtol=1e-5, atol=1e-30, equal_nan=True)


TWO_INPUTS = {"softplus_mul", "geglu", "clamped_glu"}


def test_float64_is_refused(modules: dict[str, ModuleType]) -> None:
    with pytest.raises(TypeError, match=r"an input of torch\.float64 is not supported"):
        modules["relu_squared"].LigerTestFunction.apply(torch.randn(3, dtype=torch.float64))


def test_shapes_that_do_not_fit_are_refused_as_by_pytorch(modules: dict[str, ModuleType]) -> None:
    with pytest.raises(RuntimeError, match="must match"):
        modules["swiglu"].LigerTestFunction.apply(torch.randn(3, 4), torch.randn(3, 5), 1.0)
