from functools import partial

import interpreted  # noqa: F401  activates
import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreted import elementwise

HALVES = [torch.float16, torch.bfloat16]
SPECIAL = [0.0, -0.0, 1.0, -3.5, 65504.0, -65504.0, 3.38e38, 1e-7, 6e-8, 1e-40, float("inf"), float("-inf"),
           float("nan")]  # fmt: skip
"""Both zeros, float16's and bfloat16's largest numbers, denormals, and what is no number."""
PAIRS = torch.cartesian_prod(torch.tensor(SPECIAL), torch.tensor(SPECIAL))


@triton.jit
def add(x, y):
    return x + y


@triton.jit
def subtract(x, y):
    return x - y


@triton.jit
def multiply(x, y):
    return x * y


@triton.jit
def divide(x, y):
    return x / y


@triton.jit
def floor_divide(x, y):
    return x // y


@triton.jit
def modulo(x, y):
    return x % y


@triton.jit
def maximum(x, y):
    return tl.maximum(x, y)


@triton.jit
def minimum(x, y):
    return tl.minimum(x, y)


@triton.jit
def maximum_with_nan(x, y):
    return tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def less(x, y):
    return (x < y).to(tl.float32)


@triton.jit
def choose(x, y):
    return tl.where(x > y, x, y)


@triton.jit
def clamped(x, y):
    return tl.clamp(x, y * 0 - 1, y * 0 + 1)


@triton.jit
def negative(x):
    return -x


@triton.jit
def absolute(x):
    return tl.abs(x)


@triton.jit
def times_constant(x):
    return x * 2.7


@triton.jit
def fused(x, y, z):
    return tl.fma(x, y, z)


def assert_same(computed: torch.Tensor, expected: torch.Tensor) -> None:
    assert torch.equal(computed.isnan(), expected.isnan())
    assert torch.equal(computed.nan_to_num(7), expected.nan_to_num(7))


ARITHMETIC = [(add, torch.add), (subtract, torch.sub), (multiply, torch.mul)]


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(("kernel", "reference"), ARITHMETIC)
def test_half_precision_is_rounded_after_each_operation(kernel, reference, dtype):
    x, y = (column.contiguous().to(dtype) for column in PAIRS.T)

    assert_same(elementwise(kernel, x, y), reference(x, y))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.floats(width=32), st.floats(width=32)), min_size=1, max_size=16),
    st.sampled_from(HALVES),
    st.sampled_from(ARITHMETIC),
)
def test_random_half_precision_arithmetic_is_torchs(pairs, dtype, operation):
    x, y = (torch.tensor(column).to(dtype) for column in zip(*pairs, strict=True))

    assert_same(elementwise(operation[0], x, y), operation[1](x, y))


@pytest.mark.parametrize("dtype", HALVES)
def test_half_precision_overflows_to_infinity(dtype):
    largest = torch.tensor([torch.finfo(dtype).max], dtype=dtype)

    assert elementwise(add, largest, largest).item() == float("inf")


@pytest.mark.parametrize("dtype", HALVES)
def test_division_of_halves_is_in_float32(dtype):
    x, y = torch.tensor([1.0, 2.0], dtype=dtype), torch.tensor([3.0, 7.0], dtype=dtype)

    assert torch.equal(elementwise(divide, x, y, dtype=torch.float32), x.float() / y.float())


@pytest.mark.parametrize("dtype", [*HALVES, torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("kernel", "reference"),
    [(maximum, torch.fmax), (minimum, torch.fmin), (maximum_with_nan, torch.maximum),
     (less, lambda x, y: (x < y).float()), (choose, lambda x, y: torch.where(x > y, x, y))],
)  # fmt: skip
def test_comparing_and_choosing(kernel, reference, dtype):
    x, y = (column.contiguous().to(dtype) for column in PAIRS.T)
    expected = reference(x, y)

    assert_same(elementwise(kernel, x, y, dtype=expected.dtype), expected)


@pytest.mark.parametrize("dtype", [*HALVES, torch.float32])
def test_clamp_replaces_nan_by_the_lower_bound(dtype):
    x = torch.tensor([float("nan"), -5.0, 0.5, 9.0], dtype=dtype)

    assert elementwise(clamped, x, torch.ones(4, dtype=dtype)).tolist() == [-1, -1, 0.5, 1]


@pytest.mark.parametrize("dtype", [*HALVES, torch.float32, torch.float64])
@pytest.mark.parametrize(("kernel", "reference"), [(negative, torch.neg), (absolute, torch.abs)])
def test_sign_operations(kernel, reference, dtype):
    x = torch.tensor(SPECIAL).to(dtype)

    assert_same(elementwise(kernel, x), reference(x))


@pytest.mark.parametrize("dtype", HALVES)
def test_a_constant_takes_the_blocks_type(dtype):
    x = torch.linspace(-3, 3, 33).to(dtype)

    assert_same(elementwise(times_constant, x), x * torch.tensor(2.7, dtype=dtype))


INTEGERS = [torch.int8, torch.int16, torch.int32, torch.int64]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_division_truncates_and_the_remainder_has_the_dividends_sign(dtype):
    x = torch.tensor([7, -7, 7, -7, 100, -100], dtype=dtype)
    y = torch.tensor([2, 2, -2, -2, 7, 7], dtype=dtype)

    assert torch.equal(elementwise(floor_divide, x, y), torch.div(x, y, rounding_mode="trunc"))
    assert torch.equal(elementwise(modulo, x, y), torch.fmod(x, y))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap(dtype):
    largest = torch.tensor([torch.iinfo(dtype).max], dtype=dtype)

    assert elementwise(add, largest, largest).item() == -2
    assert torch.equal(elementwise(multiply, largest, largest), largest * largest)


def test_an_integer_times_a_float_constant_is_float32():
    x = torch.tensor([1, 2, -3], dtype=torch.int32)

    assert torch.equal(elementwise(times_constant, x, dtype=torch.float32), x.float() * torch.tensor(2.7))


def test_the_remainder_of_floats_is_the_compilers():
    """x - y * trunc(x / y): 1.0 / 0.1 rounds to 10, so the rest is float32's error of 0.1, times ten."""
    x, y = torch.tensor([1.0, 7.5, 3.0]), torch.tensor([0.1, 2.0, float("inf")])

    rest = elementwise(modulo, x, y)

    assert rest[0].item() == pytest.approx(1 - 10 * np.float64(np.float32(0.1)), abs=1e-12)
    assert rest[1:].tolist() == [1.5, 3.0]


def exact_fma(x, y, z):
    from fractions import Fraction

    return float(Fraction(x) * Fraction(y) + Fraction(z))


numbers = partial(st.floats, allow_nan=False, allow_infinity=False, min_value=-(2.0**40), max_value=2.0**40)


@settings(max_examples=60, deadline=None)
@given(numbers(width=32), numbers(width=32), numbers(width=32))
def test_float32_fma_rounds_once(x, y, z):
    """The exact sum as float64 is rounded to odd by construction of the test: compare with both neighbours."""
    found = elementwise(fused, *(torch.tensor([one]) for one in (x, y, z))).item()
    from fractions import Fraction

    exact = Fraction(x) * Fraction(y) + Fraction(z)
    below, above = (float(np.nextafter(np.float32(found), np.float32(to))) for to in (-np.inf, np.inf))
    error = abs(Fraction(found) - exact)
    assert error <= abs(Fraction(below) - exact)
    assert error <= abs(Fraction(above) - exact)


@settings(max_examples=60, deadline=None)
@given(numbers(), numbers(), numbers())
def test_float64_fma_rounds_once(x, y, z):
    inputs = [torch.tensor([one], dtype=torch.float64) for one in (x, y, z)]

    assert elementwise(fused, *inputs).item() == exact_fma(x, y, z)


@triton.jit
def high_product(x, y):
    return tl.umulhi(x, y)


@triton.jit
def shifted_right(x, y):
    return (x >> y) + x * 0


@pytest.mark.parametrize(("dtype", "bits"), [(torch.int32, 32), (torch.int64, 64)])
def test_high_product_of_the_bits(dtype, bits):
    values = [3, -1, 2**31 - 1, -(2**31), 12345]
    x, y = torch.tensor(values, dtype=dtype), torch.tensor(values[::-1], dtype=dtype)

    found = elementwise(high_product, x, y)

    unsigned = [((a % 2**bits) * (b % 2**bits)) >> bits for a, b in zip(values, values[::-1], strict=True)]
    assert [one % 2**bits for one in found.tolist()] == unsigned


def test_right_shift_keeps_the_sign_and_the_operand():
    x, y = torch.tensor([-8, 8, -1]), torch.tensor([1, 2, 60])

    assert elementwise(shifted_right, x, y).tolist() == [-4, 2, -1]


@triton.jit
def error_function(x):
    return tl.erf(x)


@triton.jit
def reciprocal_root(x):
    return tl.rsqrt(x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("kernel", "reference"), [(error_function, torch.special.erf), (reciprocal_root, torch.rsqrt)])
def test_functions_are_rounded_from_float64(kernel, reference, dtype):
    x = torch.linspace(0.1, 4, 101).to(dtype)

    torch.testing.assert_close(elementwise(kernel, x), reference(x.double()).to(dtype), rtol=1e-15, atol=0)


@triton.jit
def square_root(x):
    return tl.sqrt(x)


@triton.jit
def power_of_two(x):
    return tl.exp2(x)


def test_approximate_functions_flush_float32_denormals_as_on_a_gpu():
    """Read off an H200. In float64 nothing is flushed."""
    assert elementwise(square_root, torch.tensor([1e-39])).item() == 0.0
    assert elementwise(power_of_two, torch.tensor([-128.0, -126.0])).tolist() == [0.0, 2.0**-126]
    assert elementwise(square_root, torch.tensor([1e-320], dtype=torch.float64)).item() > 0.0


@triton.jit
def exponential(x):
    return tl.exp(x)


@pytest.mark.parametrize("dtype", HALVES)
def test_transcendental_functions_of_halves_are_refused_as_by_the_compiler(dtype):
    from triton.runtime.errors import InterpreterError

    with pytest.raises(InterpreterError, match=r"Expected dtype \['fp32', 'fp64'\]"):
        elementwise(exponential, torch.ones(4, dtype=dtype))


def test_arithmetic_on_eight_bit_floats_is_refused():
    from tigon_tools.interpreter import UnsupportedOnCPU

    x = torch.ones(4).to(torch.float8_e4m3fn)

    with pytest.raises(UnsupportedOnCPU, match="Convert the block to float32"):
        elementwise(add, x, x)
