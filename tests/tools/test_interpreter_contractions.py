import interpreted  # noqa: F401  activates
import pytest
import torch
import triton
import triton.language as tl
from triton.runtime.errors import InterpreterError


@triton.jit
def dot_kernel(x_ptr, y_ptr, z_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, OUT: tl.constexpr):
    rows, columns, along = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(x_ptr + rows[:, None] * K + along[None, :])
    y = tl.load(y_ptr + along[:, None] * N + columns[None, :])
    tl.store(z_ptr + rows[:, None] * N + columns[None, :], tl.dot(x, y, out_dtype=OUT))


def dot(x: torch.Tensor, y: torch.Tensor, out: tl.dtype = tl.float32) -> torch.Tensor:
    z = torch.zeros(x.shape[0], y.shape[1], dtype={tl.float32: torch.float32, tl.float16: torch.float16,
                                                   tl.int32: torch.int32}[out])  # fmt: skip
    dot_kernel[(1,)](x, y, z, M=x.shape[0], N=y.shape[1], K=x.shape[1], OUT=out)
    return z


def operands(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(32, 32, generator=generator).to(dtype) for _ in range(2))


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float8_e4m3fn, torch.float8_e5m2]
)
def test_products_are_accumulated_in_float32(dtype):
    x, y = operands(dtype)

    torch.testing.assert_close(dot(x, y), (x.double() @ y.double()).float(), rtol=1e-5, atol=1e-5)


def test_a_float16_result_is_rounded_once():
    x, y = operands(torch.float16)

    torch.testing.assert_close(dot(x, y, tl.float16), (x.double() @ y.double()).half(), rtol=2**-10, atol=2**-12)


def test_integer_products_are_exact():
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randint(-128, 128, (32, 32), generator=generator, dtype=torch.int8) for _ in range(2))

    assert torch.equal(dot(x, y, tl.int32), (x.double() @ y.double()).int())


def test_sums_that_the_compiler_finds_too_short_are_refused():
    """A float16 `tl.dot` needs sums of at least 16 products on NVIDIA."""
    x = torch.ones(16, 8, dtype=torch.float16)

    with pytest.raises(InterpreterError, match=r"(?i)k >= 16"):
        dot(x, torch.ones(8, 16, dtype=torch.float16))
