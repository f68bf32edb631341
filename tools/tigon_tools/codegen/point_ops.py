"""The table: what each point-wise ATen op is in a kernel.

Functions are chosen for what PyTorch computes on CUDA in float32, at the ends of the range too:
libdevice's tanh, expm1, log1p, pow... where Triton's own language has none; NaN passes through
maximum, minimum and clamp.
"""

from __future__ import annotations

from collections.abc import Callable

from tigon_tools.codegen.arithmetic import Arithmetic, promoted
from tigon_tools.codegen.constants import SQRT_2_OVER_PI, SQRT_HALF
from tigon_tools.codegen.unsupported import Unsupported
from tigon_tools.codegen.values import Kind, Value

Lowering = Callable[..., Value]
"""Called with an `Arithmetic`, then the op's arguments: values for tensors and numbers, else as they are."""

LIBDEVICE = frozenset(
    "acos acosh asin asinh atan atan2 atanh copysign cosh erfc erfinv exp expm1 fmod hypot log10 log1p pow "
    "rint sinh tan tanh trunc".split()
)
"""Functions a generated file imports from `triton.language.extra.libdevice`.

`exp` is among them for its accuracy: `tl.exp` multiplies by log2(e) in float32 first, which makes its
relative error grow with the argument (3.7e-6 at 80 on an H200, where PyTorch and libdevice make 1.4e-7).
`tl.log`, `tl.sin`, `tl.erf` and the rest are as accurate as PyTorch's there."""

_FLOAT_FUNCTIONS = {
    **{name: f"tl.{name}" for name in "cos erf exp2 log log2 rsqrt sigmoid sin sqrt".split()},
    **{name: name for name in LIBDEVICE - {"rint", "trunc"}},
}

_SAME = ("alias", "clone", "contiguous", "detach", "lift_fresh_copy", "positive")

_ROUNDING = {"floor": "tl.floor", "ceil": "tl.ceil", "trunc": "trunc", "round": "rint"}

_COMPARISONS = {
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}

_TABLE: dict[str, Lowering] = {}


def lowering_of(target: str) -> Lowering | None:
    """Of an op by its full name ("aten.add.Tensor"); an entry for the overload goes first."""
    if target in _UNSUPPORTED_OVERLOADS:
        return None
    packet = target.rsplit(".", 1)[0]
    return _TABLE.get(target) or _TABLE.get(packet)


# Overloads whose extra argument means something that the packet's entry does not do.
_UNSUPPORTED_OVERLOADS = {"aten.round.decimals"}


def _lowers(*names: str) -> Callable[[Lowering], Lowering]:
    def register(lowering: Lowering) -> Lowering:
        for name in names:
            _TABLE[f"aten.{name}"] = lowering
        return lowering

    return register


def _register_simple_ops() -> None:
    def function(name: str) -> Lowering:
        return lambda m, *operands: m.call(name, *(m.convert(operand, Kind.FLOAT) for operand in operands))

    def rounding(name: str) -> Lowering:
        return lambda m, x: x if x.kind is not Kind.FLOAT else m.call(name, x)

    def comparison(name: str) -> Lowering:
        return lambda m, x, y: m.compare(name, x, y)

    def logical(name: str) -> Lowering:
        return lambda m, x, y: m.logical(name, x, y)

    def bitwise(name: str) -> Lowering:
        return lambda m, x, y: m.bitwise(name, x, y)

    for op, name in _FLOAT_FUNCTIONS.items():
        _TABLE[f"aten.{op}"] = function(name)
    for op, name in _ROUNDING.items():
        _TABLE[f"aten.{op}"] = rounding(name)
    for op, name in _COMPARISONS.items():
        _TABLE[f"aten.{op}"] = comparison(name)
    for name in ("and", "or", "xor"):
        _TABLE[f"aten.logical_{name}"] = logical(name)
        _TABLE[f"aten.bitwise_{name}"] = bitwise(name)
    _TABLE["aten.bitwise_left_shift"] = bitwise("left_shift")
    _TABLE["aten.bitwise_right_shift"] = bitwise("right_shift")
    for op in _SAME:
        _TABLE[f"aten.{op}"] = lambda m, x, **_: x


_register_simple_ops()


@_lowers("add")
def _add(m: Arithmetic, x: Value, y: Value, alpha: Value | None = None) -> Value:
    return m.add(x, y if alpha is None else m.multiply(alpha, y))


@_lowers("sub")
def _subtract(m: Arithmetic, x: Value, y: Value, alpha: Value | None = None) -> Value:
    return m.subtract(x, y if alpha is None else m.multiply(alpha, y))


@_lowers("rsub")
def _reverse_subtract(m: Arithmetic, x: Value, y: Value, alpha: Value | None = None) -> Value:
    return m.subtract(y, x if alpha is None else m.multiply(alpha, x))


@_lowers("mul")
def _multiply(m: Arithmetic, x: Value, y: Value) -> Value:
    if x.kind is Kind.BOOL and y.kind is Kind.BOOL:
        return m.logical("and", x, y)
    return m.multiply(x, y)


@_lowers("div")
def _divide(m: Arithmetic, x: Value, y: Value, rounding_mode: str | None = None) -> Value:
    if rounding_mode is None:
        return m.divide(x, y)
    if x.kind is not Kind.FLOAT and y.kind is not Kind.FLOAT:
        raise Unsupported("aten.div.Tensor_mode of two integers: Triton's integer division rounds differently.")
    # Rounded to nearest first, else the quotient of exact multiples could come out just below.
    quotient = m.call("tl.div_rn", m.convert(x, Kind.FLOAT), m.convert(y, Kind.FLOAT))
    return m.call("tl.floor" if rounding_mode == "floor" else "trunc", quotient)


@_lowers("reciprocal")
def _reciprocal(m: Arithmetic, x: Value) -> Value:
    return m.divide(m.constant(1), x)


@_lowers("neg")
def _negate(m: Arithmetic, x: Value) -> Value:
    return m.negate(x)


@_lowers("abs")
def _absolute(m: Arithmetic, x: Value) -> Value:
    return m.absolute(x)


@_lowers("sign", "sgn")
def _sign(m: Arithmetic, x: Value) -> Value:
    """Zero for NaN, as PyTorch has it."""
    zero = m.constant(0.0)
    negative = m.where(m.compare("less", x, m.constant(0)), m.constant(-1.0), zero)
    return m.where(m.compare("greater", x, m.constant(0)), m.constant(1.0), negative)


@_lowers("pow")
def _power(m: Arithmetic, x: Value, exponent: Value) -> Value:
    return m.power(x, exponent)


@_lowers("addcmul")
def _add_product(m: Arithmetic, x: Value, a: Value, b: Value, value: Value | None = None) -> Value:
    product = m.multiply(a, b)
    return m.add(x, product if value is None else m.multiply(value, product))


@_lowers("addcdiv")
def _add_quotient(m: Arithmetic, x: Value, a: Value, b: Value, value: Value | None = None) -> Value:
    return m.add(x, m.divide(a if value is None else m.multiply(value, a), b))


@_lowers("lerp")
def _interpolate(m: Arithmetic, start: Value, end: Value, weight: Value) -> Value:
    """From the nearer end, as PyTorch does it, so that a weight of one gives `end` itself."""
    difference = m.subtract(end, start)
    near_start = m.add(start, m.multiply(weight, difference))
    near_end = m.subtract(end, m.multiply(m.subtract(m.constant(1), weight), difference))
    return m.where(m.compare("less", m.absolute(weight), m.constant(0.5)), near_start, near_end)


@_lowers("remainder")
def _remainder(m: Arithmetic, x: Value, y: Value) -> Value:
    """The sign is the divisor's, as in Python."""
    zero = m.constant(0)
    fmod = m.call("fmod", m.convert(x, Kind.FLOAT), m.convert(y, Kind.FLOAT))
    signs_differ = m.logical("xor", m.compare("less", fmod, zero), m.compare("less", y, zero))
    wrong = m.logical("and", m.compare("not_equal", fmod, zero), signs_differ)
    return m.where(wrong, m.add(fmod, y), fmod)


@_lowers("relu")
def _relu(m: Arithmetic, x: Value) -> Value:
    return m.relu(x)


@_lowers("maximum")
def _maximum(m: Arithmetic, x: Value, y: Value) -> Value:
    return m.maximum(x, y)


@_lowers("minimum")
def _minimum(m: Arithmetic, x: Value, y: Value) -> Value:
    return m.minimum(x, y)


@_lowers("fmax")
def _maximum_of_numbers(m: Arithmetic, x: Value, y: Value) -> Value:
    """NaN counts as missing, which is what a Triton maximum does when not told otherwise."""
    return m.call("tl.maximum", x, y, kind=promoted(x, y))


@_lowers("fmin")
def _minimum_of_numbers(m: Arithmetic, x: Value, y: Value) -> Value:
    return m.call("tl.minimum", x, y, kind=promoted(x, y))


@_lowers("clamp", "hardtanh")
def _clamp(m: Arithmetic, x: Value, min: Value | None = None, max: Value | None = None) -> Value:
    return m.clamp(x, min, max)


@_lowers("clamp_min")
def _clamp_min(m: Arithmetic, x: Value, min: Value) -> Value:
    return m.maximum(x, min)


@_lowers("clamp_max")
def _clamp_max(m: Arithmetic, x: Value, max: Value) -> Value:
    return m.minimum(x, max)


@_lowers("where")
def _where(m: Arithmetic, condition: Value, x: Value, y: Value) -> Value:
    return m.where(condition, x, y)


@_lowers("threshold")
def _threshold(m: Arithmetic, x: Value, threshold: Value, value: Value) -> Value:
    return m.where(m.compare("less_equal", x, threshold), value, x)


@_lowers("logical_not")
def _logical_not(m: Arithmetic, x: Value) -> Value:
    return m.logical_not(x)


@_lowers("bitwise_not")
def _bitwise_not(m: Arithmetic, x: Value) -> Value:
    return m.logical_not(x) if x.kind is Kind.BOOL else m.call("not", x, kind=Kind.INT)


@_lowers("isnan")
def _is_nan(m: Arithmetic, x: Value) -> Value:
    return m.compare("not_equal", x, x)


@_lowers("isinf")
def _is_infinite(m: Arithmetic, x: Value) -> Value:
    return m.compare("equal", m.absolute(x), m.constant(float("inf")))


@_lowers("gelu")
def _gelu(m: Arithmetic, x: Value, approximate: str = "none") -> Value:
    """x * cdf(x), in the form whose parts the gradient shares."""
    if approximate == "none":
        curve = m.call("tl.erf", m.multiply(m.constant(SQRT_HALF), x))
    else:
        cubic = m.multiply(m.constant(0.044715), m.power(x, m.constant(3)))
        curve = m.call("tanh", m.multiply(m.constant(SQRT_2_OVER_PI), m.add(x, cubic)))
    return m.multiply(x, m.multiply(m.constant(0.5), m.add(curve, m.constant(1))))


@_lowers("leaky_relu")
def _leaky_relu(m: Arithmetic, x: Value, negative_slope: Value | None = None) -> Value:
    slope = m.constant(0.01) if negative_slope is None else negative_slope
    return m.where(m.compare("greater", x, m.constant(0)), x, m.multiply(slope, x))


@_lowers("elu")
def _elu(
    m: Arithmetic,
    x: Value,
    alpha: Value | None = None,
    scale: Value | None = None,
    input_scale: Value | None = None,
) -> Value:
    one = m.constant(1)
    tail = m.call("expm1", m.multiply(input_scale or one, x))
    factor = m.multiply(alpha or one, scale or one)
    return m.where(m.compare("greater", x, m.constant(0)), m.multiply(scale or one, x), m.multiply(factor, tail))


@_lowers("full", "full_like", "new_full")
def _full(m: Arithmetic, shape_or_like: object, value: Value, fill: Value | None = None, **_: object) -> Value:
    return value if fill is None else fill


@_lowers("scalar_tensor")
def _scalar_tensor(m: Arithmetic, value: Value, **_: object) -> Value:
    return value


@_lowers("zeros_like", "zeros", "new_zeros", "empty", "empty_like", "empty_permuted", "new_empty")
def _zeros(m: Arithmetic, *_: object, **__: object) -> Value:
    return m.constant(0)


@_lowers("ones_like", "ones", "new_ones")
def _ones(m: Arithmetic, *_: object, **__: object) -> Value:
    return m.constant(1)


@_lowers("copy", "fill")
def _replace(m: Arithmetic, x: Value, y: Value, *_: object) -> Value:
    return y
