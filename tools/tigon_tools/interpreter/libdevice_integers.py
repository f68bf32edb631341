"""The device library's functions of integers and of bits (CUDA Libdevice User's Guide), by symbol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tigon_tools.interpreter.element_types import Array

_U32, _U64 = np.dtype(np.uint32), np.dtype(np.uint64)
_LOW_24 = 0xFFFFFF


def _bits(x: Array) -> Array:
    return x.view(np.dtype(f"uint{x.dtype.itemsize * 8}"))


def _population(x: Array) -> Array:
    bits = _bits(np.ascontiguousarray(x)).astype(np.uint64)
    counted = np.zeros(bits.shape, dtype=np.int32)
    for place in range(x.dtype.itemsize * 8):
        counted += ((bits >> np.uint64(place)) & np.uint64(1)).astype(np.int32)
    return counted


def _leading_zeros(x: Array) -> Array:
    width = x.dtype.itemsize * 8
    bits = _bits(np.ascontiguousarray(x)).astype(np.uint64)
    zeros = np.full(bits.shape, width, dtype=np.int32)
    for place in range(width):
        zeros = np.where((bits >> np.uint64(place)) & np.uint64(1), np.int32(width - 1 - place), zeros)
    return zeros


def _first_set(x: Array) -> Array:
    """Place of the lowest set bit, counted from 1; 0 if there is none."""
    width = x.dtype.itemsize * 8
    bits = _bits(np.ascontiguousarray(x)).astype(np.uint64)
    place_of = np.zeros(bits.shape, dtype=np.int32)
    for place in reversed(range(width)):
        place_of = np.where((bits >> np.uint64(place)) & np.uint64(1), np.int32(place + 1), place_of)
    return place_of


def _reversed_bits(x: Array) -> Array:
    width = x.dtype.itemsize * 8
    bits = _bits(np.ascontiguousarray(x)).astype(np.uint64)
    turned = np.zeros(bits.shape, dtype=np.uint64)
    for place in range(width):
        turned |= ((bits >> np.uint64(place)) & np.uint64(1)) << np.uint64(width - 1 - place)
    return turned.astype(_U32 if width == 32 else _U64).view(x.dtype)


def _byte_permutation(x: Array, y: Array, selector: Array) -> Array:
    """Four bytes picked from the eight of `y` and `x`, by the low three bits of each of the selector's nibbles."""
    both = (_bits(y).astype(np.uint64) << np.uint64(32)) | _bits(x).astype(np.uint64)
    chosen = np.zeros(both.shape, dtype=np.uint64)
    for place in range(4):
        byte = (_bits(selector).astype(np.uint64) >> np.uint64(4 * place)) & np.uint64(7)
        chosen |= ((both >> (byte * np.uint64(8))) & np.uint64(0xFF)) << np.uint64(8 * place)
    return chosen.astype(np.uint32).view(np.int32)


def _high_half(x: Array, y: Array) -> Array:
    width = x.dtype.itemsize * 8
    if width == 32:
        wide = np.dtype(np.int64) if x.dtype.kind == "i" else _U64
        return (x.astype(wide) * y.astype(wide) >> wide.type(32)).astype(x.dtype)
    return np.asarray((x.astype(object) * y.astype(object)) >> 64).astype(x.dtype)


def _product_of_24_bits(x: Array, y: Array) -> Array:
    def low(value: Array) -> Array:
        bits = value.astype(np.int64) & _LOW_24
        return np.where((x.dtype.kind == "i") & (bits > _LOW_24 // 2), bits - _LOW_24 - 1, bits)

    return (low(x) * low(y)).astype(x.dtype)


def _wide(function: Callable[..., Any]) -> Callable[..., Array]:
    """`function` of the operands as int64, narrowed to the first operand's type."""
    return lambda *values: np.asarray(function(*(v.astype(np.int64) for v in values))).astype(values[0].dtype)


def _as(target: type) -> Callable[[Array], Array]:
    return lambda x: np.ascontiguousarray(x).view(target)


def _double_of_halves(high: Array, low: Array) -> Array:
    return ((_bits(high).astype(np.uint64) << np.uint64(32)) | _bits(low).astype(np.uint64)).view(np.float64)


def _half_of_double(shift: int) -> Callable[[Array], Array]:
    return lambda x: (np.ascontiguousarray(x).view(np.uint64) >> np.uint64(shift)).astype(np.uint32).view(np.int32)


_difference = _wide(lambda x, y, z: np.abs(x - y) + z)
_half_sum = _wide(lambda x, y: (x + y) >> 1)
_half_sum_up = _wide(lambda x, y: (x + y + 1) >> 1)

INTEGER_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "clz": _leading_zeros, "clzll": _leading_zeros, "popc": _population, "popcll": _population,
    "ffs": _first_set, "ffsll": _first_set, "brev": _reversed_bits, "brevll": _reversed_bits,
    "byte_perm": _byte_permutation, "mulhi": _high_half, "umulhi": _high_half, "mul64hi": _high_half,
    "umul64hi": _high_half, "mul24": _product_of_24_bits, "umul24": _product_of_24_bits,
    "sad": _difference, "usad": _difference, "abs": np.abs, "llabs": np.abs,
    "hadd": _half_sum, "uhadd": _half_sum, "rhadd": _half_sum_up, "urhadd": _half_sum_up,
    "int_as_float": _as(np.float32), "uint_as_float": _as(np.float32), "float_as_int": _as(np.int32),
    "float_as_uint": _as(np.uint32), "longlong_as_double": _as(np.float64), "double_as_longlong": _as(np.int64),
    "hiloint2double": _double_of_halves, "double2loint": _half_of_double(0), "double2hiint": _half_of_double(32),
    "nextafterf": np.nextafter, "nextafter": np.nextafter,
}  # fmt: skip
