"""The device library's arithmetic and conversions with a rounding mode in their name (`__nv_fadd_rz`).

Results are computed exactly, as fractions, and rounded as the name says: `rn` to nearest even, `rz` toward
zero, `rd` down, `ru` up. One element at a time: these are rare, and being right matters more here.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from tigon_tools.interpreter.casts import to_integer
from tigon_tools.interpreter.element_types import Array

Exact = Callable[..., Fraction]
_MODES = ("rn", "rz", "rd", "ru")
_TO_WHOLE = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}


def rounded(exact: Fraction, mode: str, kind: Any) -> Any:
    """`exact` in the float type `kind`, rounded by `mode`."""
    largest = np.finfo(kind).max
    if abs(exact) > Fraction(float(largest)) * 2:
        nearest = kind(math.copysign(math.inf, exact))
    else:
        nearest = _nearest(exact, kind)
    if mode == "rn":
        return nearest
    above = nearest == np.inf or (np.isfinite(nearest) and Fraction(float(nearest)) > exact)
    below = nearest == -np.inf or (np.isfinite(nearest) and Fraction(float(nearest)) < exact)
    down = mode == "rd" or (mode == "rz" and exact > 0)
    if above and down:
        return np.nextafter(nearest, kind(-np.inf))
    if below and not down:
        return np.nextafter(nearest, kind(np.inf))
    return nearest


def _nearest(exact: Fraction, kind: Any) -> Any:
    """To nearest even. Through float64 a float32 would be rounded twice, so its neighbours are compared."""
    guess = kind(float(exact))
    if not np.isfinite(guess):
        return guess
    around = [np.nextafter(guess, kind(-np.inf)), guess, np.nextafter(guess, kind(np.inf))]
    finite = [one for one in around if np.isfinite(one)]

    def distance(one: Any) -> tuple[Fraction, int]:
        bits = int(one.view(np.uint32 if kind is np.float32 else np.uint64))
        return abs(Fraction(float(one)) - exact), bits & 1

    return min(finite, key=distance)


def _each(values: tuple[Array, ...], kind: Any, function: Callable[..., Any]) -> Array:
    """`function` of the operands' elements as numpy scalars, gathered into an array of `kind`."""
    results = [function(*elements) for elements in zip(*(one.reshape(-1) for one in values), strict=True)]
    return np.array(results, dtype=kind).reshape(values[0].shape)


def _arithmetic(exact: Exact, plain: Callable[..., Any], mode: str) -> Callable[..., Array]:
    """`exact` of finite operands, rounded; `plain` where the result is not a finite number or is zero."""

    def element(*values: Any) -> Any:
        usual = plain(*values)
        if not all(np.isfinite(one) for one in values) or np.isnan(usual):
            return usual
        try:
            result = exact(*(Fraction(float(one)) for one in values))
        except ZeroDivisionError:
            return usual
        return rounded(result, mode, type(values[0])) if result else usual

    return lambda *values: _each(values, values[0].dtype, element)


def _square_root(mode: str) -> Callable[[Array], Array]:
    def element(x: Any) -> Any:
        nearest = np.sqrt(x)
        if mode == "rn" or not np.isfinite(nearest):
            return nearest
        square = Fraction(float(nearest)) ** 2
        if square > Fraction(float(x)) and mode in ("rz", "rd"):
            return np.nextafter(nearest, type(x)(-np.inf))
        if square < Fraction(float(x)) and mode == "ru":
            return np.nextafter(nearest, type(x)(np.inf))
        return nearest

    return lambda x: _each((x,), x.dtype, element)


def _to_float(mode: str, kind: Any) -> Callable[[Array], Array]:
    def element(x: Any) -> Any:
        if isinstance(x, np.floating):
            return rounded(Fraction(float(x)), mode, kind) if np.isfinite(x) and x != 0 else kind(x)
        return rounded(Fraction(int(x)), mode, kind)

    return lambda x: _each((x,), kind, element)


def _to_whole(mode: str, target: type, x: Array) -> Array:
    return to_integer(_TO_WHOLE[mode](x), np.dtype(target))


def _table() -> dict[str, Callable[..., Any]]:
    operations: list[tuple[str, Exact, Callable[..., Any]]] = [
        ("add", lambda x, y: x + y, np.add),
        ("sub", lambda x, y: x - y, np.subtract),
        ("mul", lambda x, y: x * y, np.multiply),
        ("div", lambda x, y: x / y, np.divide),
        ("rcp", lambda x: 1 / x, np.reciprocal),
    ]
    table: dict[str, Callable[..., Any]] = {}
    for mode in _MODES:
        for name, exact, plain in operations:
            for letter in "fd":
                table[f"{letter}{name}_{mode}"] = _arithmetic(exact, plain, mode)
        for form in ("fma", "fmaf"):
            table[f"{form}_{mode}"] = _arithmetic(lambda x, y, z: x * y + z, lambda x, y, z: x * y + z, mode)
        table[f"fsqrt_{mode}"] = table[f"dsqrt_{mode}"] = _square_root(mode)
        for source in ("double", "int", "uint", "ll", "ull"):
            table[f"{source}2float_{mode}"] = _to_float(mode, np.float32)
        for source in ("int", "uint", "ll", "ull"):
            table[f"{source}2double_{mode}"] = _to_float(mode, np.float64)
        for source in ("float", "double"):
            for letters, target in (("int", np.int32), ("uint", np.uint32), ("ll", np.int64), ("ull", np.uint64)):
                table[f"{source}2{letters}_{mode}"] = functools.partial(_to_whole, mode, target)
    table["fma"] = table["fma_rn"]
    table["fmaf"] = table["fmaf_rn"]
    return table


DIRECTED = _table()
"""By symbol without `__nv_`."""
