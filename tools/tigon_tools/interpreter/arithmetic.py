"""Arithmetic of blocks: the operations a kernel's `+`, `<`, `tl.maximum`, `tl.exp` come down to.

Causes and cures, at the builder's methods that all of them pass through:

- bfloat16 and 8-bit floats are held as bit patterns and were computed with as integers (all versions).
  bfloat16 is decoded to float32, computed, and rounded after each operation, as a GPU does.
  Arithmetic on 8-bit floats is refused; only conversions and `tl.dot` exist for them on a GPU.
- A comparison's result carried its operands' type, so a cast of it took booleans for numbers (all versions).
- Booleans added and subtracted with numpy's logic; they are one-bit integers (until 3.8).
- `tl.maximum` and `tl.minimum` passed NaN on without being asked to; a GPU drops it (until 3.8).
- `umulhi` of negative numbers, `>>`, and `fma` rounded twice (until 3.8).
- `erf` one element at a time in Python, and `rsqrt` rounded twice; `%` of floats was C's fmod; float32
  denormals survived what flushes them on a GPU: `sqrt`, `exp2`, `sin` and the like (all versions).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton._C.libtriton import ir
from triton.runtime.interpreter import InterpreterBuilder

from tigon_tools.interpreter.element_types import Array, decode, encode, flush_denormals, handle, is_pattern, numpy_type
from tigon_tools.interpreter.refusal import UnsupportedOnCPU
from tigon_tools.interpreter.replacing import replace

Operation = Callable[..., Any]

_APPROXIMATE: dict[str, Operation] = {
    "create_sqrt": np.sqrt,
    "create_exp2": np.exp2,
    "create_sin": np.sin,
    "create_cos": np.cos,
}


def operands(*handles: Any) -> list[Array]:
    """The numbers of some handles, bfloat16 as float32.

    Raises:
        UnsupportedOnCPU: one of them is an 8-bit float.
    """
    for one in handles:
        if one.dtype.scalar.name.startswith("fp8"):
            raise UnsupportedOnCPU(
                f"Arithmetic on {one.dtype.scalar.name} has no defined result on a GPU. Convert the block to "
                "float32 (`x.to(tl.float32)`) before computing with it."
            )
    return [decode(one.data, one.dtype.scalar) for one in handles]


def binary_operation(builder: Any, lhs: Any, rhs: Any, operation: Operation) -> Any:
    """`operation` of two handles of one type; the result has that type, or int1 for a comparison."""
    left, right = lhs.data, rhs.data
    dtype = lhs.dtype.scalar
    if left.dtype == np.bool_ and right.dtype == np.bool_:
        one_bit = operation(left.astype(np.int8), right.astype(np.int8))
        return handle((one_bit & 1).astype(np.bool_), tl.int1)
    if is_pattern(dtype):
        left, right = operands(lhs, rhs)
    return handle(*_typed(operation(left, right), dtype))


def unary_operation(builder: Any, argument: Any, operation: Operation) -> Any:
    dtype = argument.dtype.scalar
    numbers = operands(argument)[0] if is_pattern(dtype) else argument.data
    return handle(*_typed(operation(numbers), dtype))


def select(builder: Any, condition: Any, lhs: Any, rhs: Any) -> Any:
    """`tl.where`: bit patterns are chosen, not computed with."""
    return handle(np.where(condition.data, lhs.data, rhs.data), rhs.dtype.scalar)


def clamp(builder: Any, argument: Any, low: Any, high: Any, propagate_nan: Any) -> Any:
    """`tl.clamp`: a NaN becomes the lower bound unless it is asked to propagate."""
    x, lowest, highest = operands(argument, low, high)
    if propagate_nan == ir.PROPAGATE_NAN.NONE:
        clamped = np.fmin(np.fmax(x, lowest), highest)
    else:
        clamped = np.minimum(np.maximum(x, lowest), highest)
    return handle(*_typed(clamped, argument.dtype.scalar))


def fused_multiply_add(builder: Any, x: Any, y: Any, z: Any) -> Any:
    """`x * y + z`, rounded once."""
    dtype = z.dtype.scalar
    numbers = operands(x, y, z)
    if numbers[2].dtype == np.float64:
        return handle(fma_float64(*numbers), dtype)
    return handle(*_typed(_fma_to_odd(*(one.astype(np.float64) for one in numbers)), dtype))


def _fma_to_odd(x: Array, y: Array, z: Array) -> Array:
    """float64 that rounds to the right float32, float16 or bfloat16: the product is exact, the sum is to odd."""
    product = x * y
    total = product + z
    part = total - product
    lost = (product - (total - part)) + (z - part)
    adjust = (lost != 0) & np.isfinite(total) & ((total.view(np.uint64) & np.uint64(1)) == 0)
    return np.where(adjust, np.nextafter(total, np.where(lost > 0, np.inf, -np.inf)), total)


@np.vectorize(otypes=[np.float64])
def fma_float64(x: float, y: float, z: float) -> float:
    if not (np.isfinite(x) and np.isfinite(y) and np.isfinite(z)):
        return float(x * y + z)
    exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    try:
        return float(exact) if exact else float(x * y + z)
    except OverflowError:
        return float(np.inf if exact > 0 else -np.inf)


def divide_integers(builder: Any, lhs: Any, rhs: Any) -> Any:
    """`//` of integers truncates toward zero, as on a GPU; numpy's floors."""
    quotient = (lhs.data - np.fmod(lhs.data, rhs.data)) // rhs.data
    return handle(*_typed(quotient, lhs.dtype.scalar))


def arithmetic_shift_right(builder: Any, lhs: Any, rhs: Any) -> Any:
    signed = np.dtype(f"int{lhs.data.dtype.itemsize * 8}")
    shifted = np.right_shift(lhs.data.view(signed), rhs.data.astype(signed))
    return handle(shifted.view(lhs.data.dtype), lhs.dtype.scalar)


def multiply_high(builder: Any, lhs: Any, rhs: Any) -> Any:
    """The high half of the product of the operands' bits, read as unsigned integers."""
    dtype = lhs.data.dtype
    bits = dtype.itemsize * 8
    unsigned = np.dtype(f"uint{bits}")
    left, right = lhs.data.view(unsigned), rhs.data.view(unsigned)
    if bits == 64:
        wide = left.astype(object) * right.astype(object)
        high = np.asarray(wide >> 64).astype(np.uint64)
    else:
        double = np.dtype(f"uint{2 * bits}")
        high = ((left.astype(double) * right.astype(double)) >> double.type(bits)).astype(unsigned)
    return handle(high.view(dtype), lhs.dtype.scalar)


def remainder(numbers: Array, divisors: Array) -> Array:
    """`%` of floats, as the compiler makes it: `x - y * trunc(x / y)` in one fma, and `x` for an infinite `y`.

    It is not C's fmod: a quotient that rounds to a whole number leaves a small remainder of either sign.
    """
    quotient = -np.trunc(numbers / divisors)
    if numbers.dtype == np.float64:
        rest = np.asarray(fma_float64(quotient, divisors, numbers))
    else:
        rest = _fma_to_odd(*(one.astype(np.float64) for one in (quotient, divisors, numbers)))
    return np.where(np.isinf(divisors), numbers, rest)


def error_function(numbers: Array) -> Array:
    wide = torch.from_numpy(flush_denormals(numbers).astype(np.float64))
    values: Array = torch.special.erf(wide).numpy()
    return values


def reciprocal_square_root(numbers: Array) -> Array:
    return np.asarray(1 / np.sqrt(flush_denormals(numbers).astype(np.float64)))


def _typed(result: Array, dtype: Any) -> tuple[Array, Any]:
    """A result in `dtype`'s numpy form, or as int1 where it is a comparison's."""
    if result.dtype == np.bool_:
        return result, tl.int1
    if is_pattern(dtype):
        return encode(result, dtype), dtype
    return result.astype(numpy_type(dtype), copy=False), dtype


def approximate(function: Operation) -> Operation:
    """A function that a GPU has an approximate instruction for, which flushes float32 denormals."""
    return lambda numbers: flush_denormals(np.asarray(function(flush_denormals(numbers))))


def _through_binary(operation: Operation) -> Operation:
    return lambda builder, lhs, rhs: builder.binary_op(lhs, rhs, operation)


def _through_unary(operation: Operation) -> Operation:
    return lambda builder, argument: builder.unary_op(argument, operation)


def repair() -> None:
    replace(InterpreterBuilder, "binary_op", binary_operation)
    replace(InterpreterBuilder, "unary_op", unary_operation)
    replace(InterpreterBuilder, "create_select", select)
    replace(InterpreterBuilder, "create_clampf", clamp)
    replace(InterpreterBuilder, "create_fma", fused_multiply_add)
    replace(InterpreterBuilder, "create_idiv", divide_integers)
    replace(InterpreterBuilder, "create_ashr", arithmetic_shift_right)
    replace(InterpreterBuilder, "create_umulhi", multiply_high)
    replace(InterpreterBuilder, "create_minnumf", _through_binary(np.fmin))
    replace(InterpreterBuilder, "create_maxnumf", _through_binary(np.fmax))
    replace(InterpreterBuilder, "create_frem", _through_binary(remainder))
    for name, function in _APPROXIMATE.items():
        replace(InterpreterBuilder, name, _through_unary(approximate(function)))
    replace(InterpreterBuilder, "create_erf", _through_unary(error_function))
    replace(InterpreterBuilder, "create_rsqrt", _through_unary(reciprocal_square_root))
