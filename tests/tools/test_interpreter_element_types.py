import interpreted  # noqa: F401  activates
import numpy as np
import pytest
import torch
import triton.language as tl
from hypothesis import given
from hypothesis import strategies as st

from tigon_tools.interpreter import UnsupportedOnCPU
from tigon_tools.interpreter.element_types import (
    bfloat16_to_float32,
    decode,
    encode,
    float32_to_bfloat16,
    nearest_float32_for_rounding,
    numpy_type,
)


def as_bfloat16(patterns):
    return torch.from_numpy(patterns.view(np.int16)).view(torch.bfloat16)


def same(left: torch.Tensor, right: torch.Tensor) -> bool:
    return torch.equal(left.isnan(), right.isnan()) and torch.equal(left.nan_to_num(1), right.nan_to_num(1))


def test_every_bfloat16_pattern_is_read_as_torch_reads_it():
    patterns = np.arange(2**16, dtype=np.uint32).astype(np.uint16)

    assert same(torch.from_numpy(bfloat16_to_float32(patterns)), as_bfloat16(patterns).float())


@given(st.lists(st.floats(width=32), min_size=1, max_size=64))
def test_float32_is_rounded_to_bfloat16_as_torch_rounds(values):
    numbers = np.array(values, dtype=np.float32)

    assert same(as_bfloat16(float32_to_bfloat16(numbers)), torch.from_numpy(numbers).bfloat16())


@pytest.mark.parametrize(
    ("number", "rounded"),
    [
        (1.00390625, 1.0),  # a tie goes to the even neighbour, here down
        (1.01171875, 1.015625),  # and here up
        (3.3961776e38, float("inf")),  # beyond the largest bfloat16 by more than half a step
    ],
)
def test_ties_and_overflow(number, rounded):
    assert bfloat16_to_float32(float32_to_bfloat16(np.array([number], dtype=np.float32)))[0] == rounded


@given(st.floats(allow_nan=False, allow_infinity=False, width=16), st.integers(-1, 1))
def test_float64_next_to_a_tie_is_not_rounded_twice(half, side):
    """Halfway between two float16 numbers, or a float64 step beside it; the exact rule decides."""
    low = np.float16(half)
    high = np.nextafter(low, np.float16(np.inf))
    if not np.isfinite(high):
        return
    middle = (np.float64(low) + np.float64(high)) / 2
    number = np.nextafter(middle, np.inf * side) if side else middle

    through_float32 = nearest_float32_for_rounding(np.array([number]))[0].astype(np.float16)

    assert through_float32 == np.float64(number).astype(np.float16)  # numpy rounds float64 to float16 once


@pytest.mark.parametrize("name", ["float8e4nv", "float8e5"])
def test_eight_bit_floats_saturate_and_keep_nan(name):
    dtype = getattr(tl, name)
    torch_type = {"float8e4nv": torch.float8_e4m3fn, "float8e5": torch.float8_e5m2}[name]
    numbers = np.array([1e9, -1e9, np.inf, np.nan, 0.3], dtype=np.float32)

    read_back = decode(encode(numbers, dtype), dtype)

    largest = torch.finfo(torch_type).max
    assert read_back[:3].tolist() == [largest, -largest, largest]
    assert np.isnan(read_back[3])
    assert read_back[4] == torch.tensor(0.3).to(torch_type).float().item()


def test_a_format_that_no_library_has_is_refused():
    with pytest.raises(UnsupportedOnCPU, match="float8e4nv or float8e5"):
        decode(np.zeros(2, dtype=np.uint8), tl.float8e4b15)


def test_pointers_and_blocks_have_a_numpy_type():
    assert numpy_type(tl.pointer_type(tl.float16)) == np.uint64
    assert numpy_type(tl.block_type(tl.bfloat16, [4])) == np.uint16
