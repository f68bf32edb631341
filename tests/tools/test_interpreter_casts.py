import interpreted  # noqa: F401  activates
import pytest
import torch
import triton
import triton.language as tl
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreted import elementwise

from tigon_tools.interpreter import UnsupportedOnCPU

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [torch.int8, torch.int16, torch.int32, torch.int64]


@triton.jit
def cast_kernel(x_ptr, z_ptr, SIZE: tl.constexpr, ROUNDING: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    x = tl.load(x_ptr + offsets)
    tl.store(z_ptr + offsets, x.to(z_ptr.dtype.element_ty, fp_downcast_rounding=ROUNDING))


def cast(x: torch.Tensor, dtype: torch.dtype, rounding: str | None = None) -> torch.Tensor:
    size = triton.next_power_of_2(x.numel())
    padded = torch.zeros(size, dtype=x.dtype)
    padded[: x.numel()] = x
    result = torch.zeros(size, dtype=dtype)
    cast_kernel[(1,)](padded, result, SIZE=size, ROUNDING=rounding)
    return result[: x.numel()]


def assert_same(computed: torch.Tensor, expected: torch.Tensor) -> None:
    assert torch.equal(computed.isnan(), expected.isnan())
    assert torch.equal(computed.nan_to_num(7), expected.nan_to_num(7))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(width=32), min_size=1, max_size=16), st.sampled_from(FLOATS), st.sampled_from(FLOATS))
def test_floats_convert_as_in_torch(values, source, target):
    """torch rounds float64 to bfloat16 through float32; the values here are float32, so both round once."""
    x = torch.tensor(values, dtype=torch.float32).to(source)

    assert_same(cast(x, target), x.to(target))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=16),
    st.sampled_from(INTEGERS),
    st.sampled_from(FLOATS),
)
def test_integers_convert_to_floats_as_in_torch(values, source, target):
    x = torch.tensor(values).to(source)
    through = x if target in (torch.float32, torch.float64) else x.float()

    assert_same(cast(x, target), through.to(target))


@pytest.mark.parametrize("source", FLOATS)
def test_floats_truncate_to_integers(source):
    x = torch.tensor([1.9, -1.9, 0.5, -0.5, 100.0]).to(source)

    assert cast(x, torch.int32).tolist() == [1, -1, 0, 0, 100]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        # 1e9, -1e9, infinity, minus infinity, NaN: what an H200 gave
        (torch.float32, torch.int16, [32767, -32768, 32767, -32768, 0]),
        (torch.float32, torch.int32, [10**9, -(10**9), 2**31 - 1, -(2**31), 0]),
        (torch.float32, torch.int64, [10**9, -(10**9), 2**63 - 1, -(2**63), -(2**63)]),
        (torch.float64, torch.int32, [10**9, -(10**9), 2**31 - 1, -(2**31), -(2**31)]),
        (torch.float32, torch.int8, [-1, 0, -1, 0, 0]),
    ],
)
def test_floats_beyond_an_integer_type_saturate_as_on_a_gpu(source, target, expected):
    x = torch.tensor([1e9, -1e9, float("inf"), float("-inf"), float("nan")], dtype=source)

    assert cast(x, target).tolist() == expected


@pytest.mark.parametrize("target", [torch.float16, torch.bfloat16])
def test_rounding_towards_zero(target):
    x = torch.tensor([1.0, 1.9999, -1.9999, 65519.9, -65519.9, 1e-7, float("inf")])

    found = cast(x, target, "rtz").double()

    above = torch.nextafter(found.to(target), torch.copysign(torch.tensor(float("inf")), x).to(target)).double()
    assert bool((found.abs() <= x.double().abs()).all())
    assert bool(((above.abs() > x.double().abs()) | x.isinf()).all())


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
@pytest.mark.parametrize("other", [torch.float16, torch.bfloat16, torch.float32])
def test_eight_bit_floats_round_trip(dtype, other):
    every = torch.arange(256, dtype=torch.int32).to(torch.uint8).view(dtype)

    wide = cast(every, other)

    assert_same(wide.float(), every.float())
    finite = every.float().isfinite()
    assert torch.equal(cast(wide, dtype).view(torch.uint8)[finite], every.view(torch.uint8)[finite])


def test_eight_bit_floats_round_to_nearest_even():
    """A carry out of the mantissa has to reach the exponent."""
    x = torch.tensor([0.96875, 1.9375, 240.1, 15.6, 0.0009])

    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        assert torch.equal(cast(x, dtype).float(), x.to(dtype).float())


def test_float64_to_eight_bits_is_refused_as_by_the_compiler():
    with pytest.raises(UnsupportedOnCPU, match="Convert to float32 in between"):
        cast(torch.ones(4, dtype=torch.float64), torch.float8_e5m2)


@triton.jit
def store_constant(x):
    return tl.full(x.shape, 0.1, tl.bfloat16)


@triton.jit
def bits_of(x):
    return x.to(tl.int16, bitcast=True)


def test_bfloat16_constants_and_bits():
    x = torch.tensor([1.5, -2.0, float("nan")], dtype=torch.bfloat16)

    assert torch.equal(elementwise(store_constant, x), torch.full((3,), 0.1, dtype=torch.bfloat16))
    assert torch.equal(elementwise(bits_of, x, dtype=torch.int16), x.view(torch.int16))
