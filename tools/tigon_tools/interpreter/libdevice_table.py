"""What the functions of NVIDIA's device library compute, by symbol (CUDA Libdevice User's Guide).

Functions of real numbers are computed in float64 and rounded once to the result's type, so a float32 result
is at least as close as a GPU's. The library flushes float32 denormals, and so does this. Approximate functions
(`__nv_fast_expf`) are given exactly: a CPU does not imitate the error of a GPU's special function unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tigon_tools.interpreter.casts import to_integer
from tigon_tools.interpreter.directed_rounding import DIRECTED
from tigon_tools.interpreter.element_types import Array, flush_denormals
from tigon_tools.interpreter.libdevice_integers import INTEGER_FUNCTIONS

Function = Callable[..., Any]


def function_of(symbol: str) -> Function | None:
    """The numpy function for a symbol such as `__nv_tanhf`; None where there is none."""
    if not symbol.startswith("__nv_"):
        return None
    name = symbol.removeprefix("__nv_")
    if name in INTEGER_FUNCTIONS:
        return INTEGER_FUNCTIONS[name]
    if name in DIRECTED:
        return _flushing(DIRECTED[name])
    real = _REAL.get(name) or _REAL.get(name.removesuffix("f"))
    return None if real is None else _flushing(_in_float64(real))


def _in_float64(function: Function) -> Function:
    def call(*values: Array) -> Array:
        wide = [one.astype(np.float64) if one.dtype.kind == "f" else one for one in values]
        result: Array = np.asarray(function(*wide))
        return result

    return call


def _flushing(function: Function) -> Function:
    """`function` of operands whose float32 denormals are zeros, giving zeros for float32 denormals."""

    def call(*values: Array) -> Array:
        result: Array = np.asarray(function(*(flush_denormals(one) for one in values)))
        if result.dtype == np.float64 and any(one.dtype == np.float32 for one in values):
            result = result.astype(np.float32)
        return flush_denormals(result)

    return call


def _torch(function: Callable[[torch.Tensor], torch.Tensor]) -> Function:
    def call(x: Array) -> Array:
        result: Array = function(torch.from_numpy(np.ascontiguousarray(x))).numpy()
        return result

    return call


def _each(function: Callable[..., float]) -> Function:
    return np.vectorize(function, otypes=[np.float64])


def _gamma(x: float) -> float:
    try:
        return math.gamma(x)
    except OverflowError:
        return math.inf
    except ValueError:  # a pole: zero keeps its sign, negative integers have none
        return math.copysign(math.inf, x) if x == 0 else math.nan


def _remainder(x: float, y: float) -> float:
    return math.remainder(x, y) if math.isfinite(x) and y != 0 and not math.isnan(y) else math.nan


def _half_turns(x: Array, of_turn: Callable[[Array], Array]) -> Array:
    """sin or cos of pi * x; exact at multiples of a half, where pi itself is not."""
    return of_turn(np.asarray(np.fmod(x, 2.0)))


def _sine_of_turn(x: Array) -> Array:
    quarter = np.rint(2 * x)
    rest = np.pi * (x - quarter / 2)
    turn = np.mod(quarter, 4)
    values = np.select([turn == 0, turn == 1, turn == 2], [np.sin(rest), np.cos(rest), -np.sin(rest)], -np.cos(rest))
    return np.where(np.isfinite(x), values, np.nan)


def _round_half_away(x: Array) -> Array:
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1.0, x), np.copysign(whole, x))


def _exponent(x: Array) -> Array:
    """floor(log2(|x|)), as an integer; zero and NaN give INT_MIN, infinity INT_MAX."""
    places = np.frexp(x)[1].astype(np.int64) - 1
    special = np.where(np.isinf(x), 2**31 - 1, -(2**31))
    return np.where(np.isfinite(x) & (x != 0), places, special).astype(np.int32)


def _exponent_as_real(x: Array) -> Array:
    places = np.frexp(x)[1].astype(np.float64) - 1
    return np.where(x == 0, -np.inf, np.where(np.isfinite(x), places, np.abs(x)))


def _positive_difference(x: Array, y: Array) -> Array:
    return np.where(x > y, x - y, np.where(np.isnan(x) | np.isnan(y), np.nan, 0.0))


def _length(*parts: Array) -> Array:
    """Square root of the sum of squares; infinite if any part is."""
    total = parts[0]
    for part in parts[1:]:
        total = np.hypot(total, part)
    return np.abs(total)


_SQRT_2 = math.sqrt(2.0)
_special = torch.special
_erfc = _torch(_special.erfc)
_normal_quantile = _torch(_special.ndtri)

_REAL: dict[str, Function] = {
    "fabs": np.abs, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint,
    "nearbyint": np.rint, "round": _round_half_away,
    "llrint": lambda x: to_integer(np.rint(x), np.dtype(np.int64)),
    "llround": lambda x: to_integer(_round_half_away(x), np.dtype(np.int64)),
    "saturate": lambda x: np.fmin(np.fmax(x, 0.0), 1.0),
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "frsqrt_rn": lambda x: 1 / np.sqrt(x),
    "cbrt": np.cbrt, "rcbrt": lambda x: 1 / np.cbrt(x),
    "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: np.power(10.0, x), "expm1": np.expm1,
    "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinpi": lambda x: _half_turns(x, _sine_of_turn),
    "cospi": lambda x: _half_turns(x, lambda turn: _sine_of_turn(np.abs(turn) + 0.5)),
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "atan2": np.arctan2, "pow": np.power, "powi": lambda x, n: np.power(x, n.astype(np.float64)),
    "fmod": np.fmod, "remainder": _each(_remainder), "fdim": _positive_difference,
    "copysign": np.copysign, "hypot": _length, "norm3d": _length, "norm4d": _length,
    "rhypot": lambda *x: 1 / _length(*x), "rnorm3d": lambda *x: 1 / _length(*x),
    "rnorm4d": lambda *x: 1 / _length(*x),
    "ldexp": np.ldexp, "scalbn": np.ldexp, "ilogb": _exponent, "logb": _exponent_as_real,
    "erf": _torch(_special.erf), "erfc": _erfc, "erfcx": _torch(_special.erfcx), "erfinv": _torch(_special.erfinv),
    "erfcinv": lambda x: -_normal_quantile(x / 2) / _SQRT_2,
    "normcdf": lambda x: 0.5 * _erfc(-x / _SQRT_2), "normcdfinv": _normal_quantile,
    "lgamma": _torch(torch.lgamma), "tgamma": _each(_gamma),
    "j0": _torch(_special.bessel_j0), "j1": _torch(_special.bessel_j1),
    "y0": _torch(_special.bessel_y0), "y1": _torch(_special.bessel_y1),
    "cyl_bessel_i0": _torch(_special.i0), "cyl_bessel_i1": _torch(_special.i1),
    "fast_fdividef": np.divide, "fast_sinf": np.sin, "fast_cosf": np.cos, "fast_tanf": np.tan,
    "fast_expf": np.exp, "fast_exp10f": lambda x: np.power(10.0, x), "fast_logf": np.log,
    "fast_log2f": np.log2, "fast_log10f": np.log10, "fast_powf": np.power,
    "isnan": np.isnan, "isnand": np.isnan, "isinf": np.isinf, "isinfd": np.isinf,
    "finite": np.isfinite, "isfinited": np.isfinite, "signbit": np.signbit, "signbitd": np.signbit,
}  # fmt: skip
"""By symbol without `__nv_`, and without the final f of the float32 form. `jn`, `yn` and `rcp64h` are not here."""
