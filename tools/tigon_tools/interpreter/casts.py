"""Conversions between element types, rounded and saturated as a GPU does.

Causes and cures, at `cast_impl` and `create_fp_to_fp`, which every conversion passes through (all versions):

- Conversions to and from bfloat16 other than float32's moved bit patterns; float32 to bfloat16 truncated.
- Rounding to 8-bit floats lost the carry into the exponent.
- Floats outside an integer type's range became its smallest value; a GPU's `cvt` saturates. NaN becomes 0, or
  the smallest integer where 64 bits are involved. Eight-bit integers are the low bits of 16-bit ones. All of
  this was read off an H200; what is out of range has no defined result on other hardware.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from triton._C.libtriton import ir
from triton.runtime.interpreter import InterpreterBuilder

from tigon_tools.interpreter.element_types import Array, decode, encode, handle, numpy_type
from tigon_tools.interpreter.refusal import UnsupportedOnCPU
from tigon_tools.interpreter.replacing import replace


def convert(builder: Any, source: Any, target: Any) -> Any:
    """A handle's numbers in another type; floats are rounded to nearest even."""
    source_type, target_type = source.dtype.scalar, target.scalar
    if not source_type.is_floating() and not target_type.is_floating():
        return handle(source.data.astype(numpy_type(target_type), copy=False), target_type)
    numbers = decode(source.data, source_type)
    if target_type.is_floating():
        if not source_type.is_floating():
            numbers = _from_integer(numbers, target_type)
        return handle(encode(numbers, target_type), target_type)
    return handle(to_integer(numbers, numpy_type(target_type)), target_type)


def check_float8(source: Any, target: Any) -> None:
    """8-bit floats have no conversion from and to float64 in the compiler.

    Raises:
        UnsupportedOnCPU: one type is an 8-bit float and the other is float64.
    """
    names = {source.name, target.name}
    if "fp64" in names and any(name.startswith("fp8") for name in names):
        raise UnsupportedOnCPU(
            f"The compiler cannot convert {source.name} to {target.name}. Convert to float32 in between."
        )


def convert_float(builder: Any, source: Any, target: Any, rounding: Any) -> Any:
    """As `convert`, between floats, with the rounding that `fp_downcast_rounding` asked for."""
    source_type, target_type = source.dtype.scalar, target.scalar
    check_float8(source_type, target_type)
    numbers = decode(source.data, source_type)
    patterns = encode(numbers, target_type)
    if rounding == ir.ROUNDING_MODE.RTZ:
        patterns = _towards_zero(numbers, patterns, target_type)
    return handle(patterns, target_type)


def to_integer(numbers: Array, target: np.dtype[Any]) -> Array:
    """Truncated toward zero; what does not fit becomes the nearest that does (see the module's docstring)."""
    if target.itemsize == 1:
        wider = np.dtype(np.int16 if target.kind == "i" else np.uint16)
        return to_integer(numbers, wider).astype(target)
    limits = np.iinfo(target)
    smallest, largest = target.type(limits.min), target.type(limits.max)
    of_nan = smallest if numbers.dtype.itemsize == 8 or target.itemsize == 8 else target.type(0)
    wide = numbers.astype(np.float64)
    inside = (wide > float(limits.min) - 1) & (wide < float(limits.max))
    truncated = np.where(inside, wide, 0).astype(target)
    outside = np.where(wide > 0, largest, np.where(np.isnan(wide), of_nan, smallest))
    return np.where(inside, truncated, outside)


def bfloat16_constant(builder: Any, value: float) -> Any:
    return handle(encode(np.array([value], dtype=np.float64), tl.bfloat16), tl.bfloat16)


def _from_integer(numbers: Array, target: Any) -> Array:
    """Integers on their way to a float type, rounded once."""
    if target.name in ("fp32", "fp64"):
        return numbers.astype(numpy_type(target))
    return numbers.astype(np.float32)


def _towards_zero(numbers: Array, patterns: Array, dtype: Any) -> Array:
    """`patterns` (nearest) one step closer to zero wherever rounding went away from it."""
    bits = patterns.view(np.dtype(f"uint{patterns.dtype.itemsize * 8}"))
    grown = np.abs(decode(patterns, dtype).astype(np.float64)) > np.abs(numbers.astype(np.float64))
    closer: Array = np.where(grown, bits - bits.dtype.type(1), bits).view(patterns.dtype)
    return closer


def repair() -> None:
    replace(InterpreterBuilder, "cast_impl", convert)
    # 3.6 and 3.7 have no constants of this type, so that `x_bf16 * 2.0` failed.
    setattr(InterpreterBuilder, "get_bf16", bfloat16_constant)  # noqa: B010  not a method of all versions
    replace(InterpreterBuilder, "create_fp_to_fp", convert_float)
