import interpreted  # noqa: F401  activates
import pytest
import torch
import triton
import triton.language as tl

from tigon_tools.interpreter.scalars import scalar_tensor


@triton.jit
def argument_kernel(x_ptr, z_ptr, scale, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    x = tl.load(x_ptr + offsets)
    tl.store(z_ptr + offsets, x * scale)


def test_a_float_argument_is_float32_so_a_half_block_is_promoted():
    """The compiler computes float16 times an fp32 argument in float32: 0.1 is not rounded to float16."""
    x = torch.linspace(-2, 2, 16).half()
    z = torch.zeros(16)

    argument_kernel[(1,)](x, z, 0.1, SIZE=16)

    assert torch.equal(z, x.float() * torch.tensor(0.1))


@triton.jit
def cast_argument_kernel(z_ptr, eps, count, flag):
    tl.store(z_ptr, eps.to(tl.float32) + count.to(tl.float32) + flag.to(tl.float32))


def test_arguments_can_be_cast():
    z = torch.zeros(1)

    cast_argument_kernel[(1,)](z, 0.5, 3, True)

    assert z.item() == 4.5


@triton.jit
def multiply_argument_kernel(z_ptr, count):
    tl.store(z_ptr, count * 2)


@pytest.mark.parametrize(
    ("count", "expected"),
    [(2**30, -(2**31)), (2**31, 2**32), (2**32 + 5, 2**33 + 10), (-(2**31), 0)],
)
def test_integers_are_int32_and_wrap_unless_they_need_more(count, expected):
    z = torch.zeros(1, dtype=torch.int64)

    multiply_argument_kernel[(1,)](z, count)

    assert z.item() == expected


@triton.jit
def loop_kernel(z_ptr, start, count, SIZE: tl.constexpr):
    total = tl.zeros([SIZE], tl.float32)
    for _ in range(start, count):
        total += 1.0
    tl.store(z_ptr + tl.arange(0, SIZE), total)


def test_arguments_bound_loops():
    z = torch.zeros(4)

    loop_kernel[(1,)](z, 2, 7, SIZE=4)

    assert z.tolist() == [5.0] * 4


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(True, "int1"), (3, "int32"), (-(2**31) - 1, "int64"), (2**63, "uint64"), (0.1, "fp32")],
)
def test_types_of_arguments_are_the_compilers(value, dtype):
    assert scalar_tensor(value).dtype.name == dtype


def test_an_integer_of_more_than_64_bits_is_an_error():
    with pytest.raises(OverflowError, match="does not fit 64 bits"):
        scalar_tensor(2**64)


@triton.jit
def index_kernel(z_ptr, stride, SIZE: tl.constexpr):
    row = tl.program_id(0)
    tl.store(z_ptr + row, (row + 3) * stride)


def test_products_of_indices_wrap_in_int32():
    """Row times stride beyond 2**31 is negative on a GPU too; an interpreter that hides it hides the bug."""
    z = torch.zeros(1, dtype=torch.int64)

    index_kernel[(1,)](z, 2**30, SIZE=1)

    assert z.item() == 3 * 2**30 - 2**32
