"""How a generated op may be called: names, shapes and dtypes that the example did not have, as eager PyTorch or refused."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from codegen_zoo import HEADER, function, generate, import_source, outputs_of

from tigon_tools.codegen.generate_job import run
from tigon_tools.judge.judge_job import run as judge
from tigon_tools.schema.errors import JobError
from tigon_tools.schema.generate import GenerateRequest
from tigon_tools.schema.judge import JudgeRequest
from tigon_tools.schema.reference import InputSpec, Reference

Op = Callable[..., Any]
numbers = itertools.count()


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    torch.manual_seed(0)


def op(code: str, folder: Path) -> Op:
    """Traced with tensors of one shape, (3, 16)."""
    module = import_source(generate("op", code).ops_source, folder, f"call_{next(numbers)}")
    apply: Op = module.LigerTestFunction.apply
    return apply


def called(run: Op, arguments: list[Any]) -> list[torch.Tensor | None]:
    """Outputs and gradients; upstream gradients are the same numbers at each call."""
    values = [a.detach().clone().requires_grad_() if isinstance(a, torch.Tensor) else a for a in arguments]
    outputs = outputs_of(run(*values))
    generator = torch.Generator().manual_seed(1)
    pairs = [(o, torch.randn(o.shape, generator=generator).to(o.dtype)) for o in outputs if o.requires_grad]
    torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
    return [*outputs, *(v.grad for v in values if isinstance(v, torch.Tensor))]


def check(code: str, run: Op, *arguments: Any, rtol: float = 1e-5) -> None:
    ours, eager = called(run, list(arguments)), called(function("op", code), list(arguments))
    assert [o is None for o in ours] == [e is None for e in eager]
    for found, right in zip(ours, eager, strict=True):
        if right is not None:
            torch.testing.assert_close(found, right, rtol=rtol, atol=rtol)


OWN = (
    "mask ctx n_cols n_rows dx dy y BLOCK_SIZE MAX_BLOCK_SIZE col_mask x_ptr X_ptr x_row_stride row_idx col_offsets "
    "program_id tiles_per_row triton tl shape grid num_warps y_dtype _as_rows _check_dtypes calculate_settings "
    "op_forward op_backward _op_forward_kernel LigerTestFunction min float int tuple ValueError exp tanh F math X Y"
).split()


@pytest.mark.parametrize("names", [OWN[start : start + 9] for start in range(0, len(OWN), 9)])
def test_arguments_may_be_called_what_the_file_calls_its_own(names: list[str], tmp_path: Path) -> None:
    """As tensors and as scalars; the reference's names stay in the signature that users see."""
    tensors = [name for name in names if name != "mask"]  # a truth value in the zoo
    code = f"def f(x, {', '.join(tensors)}):\n    return x * {' * torch.sigmoid(x) * '.join(tensors)}"
    check(code, op(code, tmp_path), torch.randn(4, 8), *(torch.rand(4, 8) + 0.5 for _ in tensors))
    assert generate("op", code).call_arguments == f"x, {', '.join(tensors)}"
    scalars = ", ".join(f"{name}: 'float' = 1.5" for name in names)
    code = f"def f(x, {scalars}):\n    return x * torch.exp(-torch.sigmoid(x)) / ({' + x * x * '.join(names)})"
    check(code, op(code, tmp_path), torch.randn(4, 8), *(0.5 + 0.1 * number for number in range(len(names))))
    assert generate("op", code).signature == f"x, {scalars}".replace("'", "")


def test_local_names_of_the_reference_step_aside_too(tmp_path: Path) -> None:
    code = (
        "def f(x):\n    tl = torch.sin(x)\n    x_ptr = tl * tl\n    exp = torch.exp(x_ptr)\n    dx = exp * tl\n"
        "    shape = torch.tanh(dx)\n    return shape * x_ptr + dx, exp"
    )
    check(code, op(code, tmp_path), torch.randn(4, 8))


def test_an_argument_called_self_is_refused() -> None:
    with pytest.raises(JobError, match=r"called `self`.* rename it in the reference"):
        generate("op", "def f(self, y):\n    return self * y")


SHAPES = [((4, 8), (8,)), ((8,), (4, 8)), ((4, 1), (4, 8)), ((4, 1), (1, 8)), ((4, 8), ()), ((2, 4, 8), (4, 1))]


@pytest.mark.parametrize("code", ["def f(x, y):\n    return torch.sin(x) * y", "def f(x, y):\n    return x * y, x - y"])
def test_inputs_broadcast_as_in_eager(code: str, tmp_path: Path) -> None:
    run = op(code, tmp_path)
    for x, y in SHAPES:
        check(code, run, torch.randn(x), torch.randn(y))


# What the kernel reads of two inputs does not say what shape the output has.
ONE_SIDED = [
    "x * y, torch.sin(y)",
    "torch.sin(y) + 0 * x.detach(), y * 2",
    "torch.where(x > 0, y, y)",
    "y * torch.ones_like(x)",
    "y.expand_as(x) * 2",
    "x**0 * y",
    "x * y, torch.ones_like(y)",
    "x * y, torch.zeros_like(y, dtype=torch.bool)",
]


@pytest.mark.parametrize("returned", ONE_SIDED)
def test_an_output_of_another_shape_is_right_or_refused(returned: str, tmp_path: Path) -> None:
    code = f"def f(x, y):\n    return {returned}"
    run = op(code, tmp_path)
    check(code, run, torch.randn(4, 8), torch.randn(4, 8))
    refused = r"the shape of y \(8,\), and all inputs together have \(4, 8\): expand y before the call"
    with pytest.raises(ValueError, match=refused):
        run(torch.randn(4, 8), torch.randn(8))
    if "ones_like" not in returned and "zeros_like" not in returned and "expand_as" not in returned:
        check(code, run, torch.randn(8), torch.randn(4, 8))


@pytest.mark.parametrize("weight", [(16,), (3, 16)])
def test_an_input_smaller_than_a_weight_without_gradient_is_refused(weight: tuple[int, ...], tmp_path: Path) -> None:
    code = "import torch\ndef f(x, w):\n    return x * w, torch.sin(x)\n"
    frozen = Reference(code, "f", inputs=(InputSpec("x", (3, 16)), InputSpec("w", weight, requires_grad=False)))
    text = run(GenerateRequest(frozen, "op", "Op")).ops_source
    apply = import_source(text, tmp_path, f"call_{next(numbers)}").Op.apply
    assert [tuple(o.shape) for o in apply(torch.randn(3, 16), torch.randn(16))] == [(3, 16), (3, 16)]
    with pytest.raises(ValueError, match=r"x \(1, 16\), and all inputs together have \(3, 16\)"):
        apply(torch.randn(1, 16), torch.randn(3, 16))


HALF, SINGLE, OTHER = torch.bfloat16, torch.float32, torch.float16


@pytest.mark.parametrize("dtypes", [(HALF, SINGLE, OTHER), (OTHER, HALF, SINGLE), (HALF, HALF, SINGLE)])
@pytest.mark.parametrize("returned", ["x * y + z, x - z", "torch.where(x > 0, y, z) * z", "x / y, torch.hypot(x, z)"])
def test_mixed_dtypes_are_promoted_as_in_eager(returned: str, dtypes: tuple[torch.dtype, ...], tmp_path: Path) -> None:
    """Values to what 16 bits hold: eager rounds in between, the kernel does not."""
    code = f"def f(x, y, z):\n    return {returned}"
    run = op(code, tmp_path)
    arguments = [(torch.rand(4, 8) + 0.5).to(dtype) for dtype in dtypes]
    check(code, run, *arguments, rtol=3e-2)
    # A tensor without dimensions does not widen those that have some.
    check(code, run, *arguments[:2], arguments[2].sum() / 32, rtol=1e-1)


FOLLOWING = [
    "x * torch.where(x > 0, 1.0, a)",
    "x * torch.where(x > 0, 1, 2)",
    "torch.where(x > 0, a, x)",
    "(x > 0) * a + x",
    "x * x, torch.where(x > 0, 1.0, a)",
    "x * x, torch.full_like(x, a)",
    "torch.ones_like(x), x * x",
    "x * x, torch.full_like(x, 2.5, dtype=torch.float32)",
    "x * x, x.detach() > a, torch.where(x > 0, 1, 2)",
]


@pytest.mark.parametrize("dtype", [HALF, SINGLE])
@pytest.mark.parametrize("returned", FOLLOWING)
def test_numbers_and_constants_have_the_dtype_of_eager(returned: str, dtype: torch.dtype, tmp_path: Path) -> None:
    code = f"def f(x, a: 'float' = 0.3):\n    return {returned}"
    run = op(code, tmp_path)
    for shape in ((4, 8), ()):
        check(code, run, torch.randn(shape).to(dtype), 0.7, rtol=2e-2)


def test_a_constant_whose_dtype_no_input_decides_is_refused() -> None:
    with pytest.raises(JobError, match="`y2` is a constant: which input's dtype it follows is not known"):
        generate("op", "def f(x, y):\n    return x * y, torch.ones(3, 16, dtype=x.dtype)")


EMPTY = [(), (0,), (0, 8), (4, 0), (2, 0, 3)]


@pytest.mark.parametrize("traced", [(3, 16), (), (0, 8)])
def test_no_elements_and_no_dimensions(traced: tuple[int, ...], tmp_path: Path) -> None:
    code = "import torch\ndef f(x, y):\n    return torch.sin(x) * y, x > 0, x + y\n"
    frozen = Reference(code, "f", inputs=(InputSpec("x", traced), InputSpec("y", traced)))
    text = run(GenerateRequest(frozen, "op", "Op")).ops_source
    apply = import_source(text, tmp_path, f"call_{next(numbers)}").Op.apply
    for shape in EMPTY:
        check(code, apply, torch.randn(shape), torch.randn(shape))
    check(code, apply, torch.randn(0, 8), torch.randn(0, 8))


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.bool])
def test_what_is_not_computed_in_float32_is_refused_at_the_call(dtype: torch.dtype, tmp_path: Path) -> None:
    run = op("def f(x, y):\n    return x * y", tmp_path)
    with pytest.raises(TypeError, match=f"computes in float32; an input of {dtype} is not supported"):
        run(torch.randn(3), torch.ones(3, dtype=dtype))


@pytest.mark.parametrize(
    ("body", "dtype", "says"),
    [
        ("x * x", "float64", "`x` is float64"),
        ("x.double() * 2", "float32", "casts to float64"),
        ("(x.double() * 2).to(x.dtype)", "float32", "casts to float64"),
        ("x * x, torch.ones_like(x, dtype=torch.float64)", "float32", "is float64"),
    ],
)
def test_float64_is_refused_when_it_is_generated(body: str, dtype: str, says: str) -> None:
    frozen = Reference(HEADER + f"def f(x):\n    return {body}\n", "f", inputs=(InputSpec("x", (3, 8), dtype),))
    with pytest.raises(JobError, match=f"{says}.*generated kernels compute in float32"):
        run(GenerateRequest(frozen, "op", "Op"))


@pytest.mark.parametrize("upstream_needs_it", [False, True])
def test_a_second_derivative_is_an_error(upstream_needs_it: bool, tmp_path: Path) -> None:
    x = torch.randn(3, 4, requires_grad=True)
    y = op("def f(x):\n    return x * x * x", tmp_path)(x)
    upstream = torch.ones_like(y).requires_grad_(upstream_needs_it)
    with pytest.raises(RuntimeError, match="has no second derivative; leave create_graph out"):
        torch.autograd.grad(y, x, upstream, create_graph=True)
    torch.autograd.grad(op("def f(x):\n    return x * x * x", tmp_path)(x), x, upstream)


def test_gradients_that_are_the_upstream_one_have_a_second_derivative(tmp_path: Path) -> None:
    x, y = (torch.randn(3, 4, requires_grad=True) for _ in range(2))
    upstream = torch.randn(3, 4, requires_grad=True)
    (dx,) = torch.autograd.grad(op("def f(x, y):\n    return x + y", tmp_path)(x, y), x, upstream, create_graph=True)
    torch.testing.assert_close(torch.autograd.grad(dx.sum(), upstream)[0], torch.ones(3, 4))


@pytest.mark.parametrize("returned", ["x > 0, x * 2", "y, y.detach()", "y.detach(), y", "y, y", "x > 0, y.detach(), y"])
def test_the_judge_passes_outputs_without_a_gradient_and_outputs_that_are_one(returned: str, tmp_path: Path) -> None:
    code = HEADER + f"def f(x):\n    y = torch.sin(x)\n    return {returned}\n"
    frozen = Reference(code, "f", inputs=(InputSpec("x", (4, 8)),))
    path = tmp_path / "candidate.py"
    path.write_text(run(GenerateRequest(frozen, "op", "Op")).ops_source)
    result = judge(JudgeRequest(f"{path}:Op", frozen, kernels=True))
    assert result.passed, [f.detail for f in result.findings if f.status == "failed"]


@pytest.mark.parametrize("returned", ["y, y.view(-1)", "y, y.t()"])
def test_outputs_of_another_shape_are_refused(returned: str) -> None:
    with pytest.raises(JobError, match="no kernel can be generated"):
        generate("op", f"def f(x):\n    y = torch.sin(x)\n    return {returned}")


@pytest.mark.slow
def test_a_long_reference_is_generated(tmp_path: Path) -> None:
    """As long as tracing lets it be, near enough; nothing follows its operations by recursion."""
    code = "def f(x, y):\n    for _ in range(450):\n        x = 0.5 * x + y\n    return x"
    check(code, op(code, tmp_path), torch.randn(4, 8), torch.randn(4, 8))
