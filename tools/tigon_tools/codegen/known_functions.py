"""Functions of the field that a graph spells out in several operations, recognised for names and formulas."""

from __future__ import annotations

import math

from tigon_tools.codegen.constants import INVERSE_SQRT_2_PI, SQRT_8_OVER_PI
from tigon_tools.codegen.values import Value


def known_function(value: Value) -> tuple[str, Value] | None:
    """The function's name and its argument: silu, gelu, softplus, sign..."""
    if value.operation == "multiply":
        return _of_product(*value.operands)
    if value.operation == "where":
        return _of_choice(*value.operands)
    if value.operation == "add":
        return _of_sum(*value.operands)
    return None


def largest_of_row(value: Value) -> Value | None:
    """The row's largest that a value is: itself, or 0 in its place where it is infinite, as logsumexp has it."""
    if value.operation == "row_max":
        return value
    if value.operation != "where" or not value.operands[1].equals(0):
        return None
    condition, _, largest = value.operands
    of_largest = largest.operation == "row_max" and condition.operation == "equal"
    if of_largest and condition.operands[0].operation == "tl.abs" and condition.operands[0].operands[0] is largest:
        return largest if condition.operands[1].equals(math.inf) else None
    return None


def exponentials_below(total: Value) -> tuple[Value, Value] | None:
    """A row's sum of exp(x - y), y of the row's largest x: x, and y."""
    if total.operation != "row_sum" or total.operands[0].operation not in ("exp", "tl.exp"):
        return None
    (exponent,) = total.operands[0].operands
    if exponent.operation != "subtract":
        return None
    element, shift = exponent.operands
    largest = largest_of_row(shift)
    return (element, shift) if largest is not None and largest.operands[0] is element else None


def _of_sum(logarithm: Value, shift: Value) -> tuple[str, Value] | None:
    found = exponentials_below(logarithm.operands[0]) if logarithm.operation == "tl.log" else None
    return ("logsumexp", found[0]) if found is not None and found[1] is shift else None


def _of_product(x: Value, y: Value) -> tuple[str, Value] | None:
    for factor, other in ((x, y), (y, x)):
        if factor.operation == "tl.sigmoid" and factor.operands[0] is other:
            return "silu", other
        if factor.operation == "tl.sigmoid" and _is_cubic(factor.operands[0], other):
            return "gelu_tanh", other
        cdf = _cdf(factor)
        if cdf is not None and cdf[1] is other:
            return ("gelu" if cdf[0] == "tl.erf" else "gelu_tanh"), other
    cdf = _cdf(x, y)
    if cdf is not None:
        return "cdf", cdf[1]
    return _pdf(x, y)


def _is_cubic(argument: Value, x: Value) -> bool:
    """sqrt(8 / pi) * (x + 0.044715 * x**3), of which the sigmoid is the factor of gelu."""
    if argument.operation != "multiply" or not argument.operands[0].equals(SQRT_8_OVER_PI):
        return False
    polynomial = argument.operands[1]
    return polynomial.operation == "add" and polynomial.operands[0] is x


def _pdf(factor: Value, exponential: Value) -> tuple[str, Value] | None:
    """The normal density: exp(-x*x / 2) / sqrt(2 * pi)."""
    if not factor.equals(INVERSE_SQRT_2_PI) or exponential.operation != "exp":
        return None
    exponent = exponential.operands[0]
    if exponent.operation != "multiply" or not exponent.operands[0].equals(-0.5):
        return None
    square = exponent.operands[1]
    is_square = square.operation == "multiply" and square.operands[0] is square.operands[1]
    return ("pdf", square.operands[0]) if is_square else None


def _cdf(*product: Value) -> tuple[str, Value] | None:
    """0.5 * (curve(x) + 1), the normal distribution or what approximates it: the curve and x."""
    if len(product) == 1:
        if product[0].operation != "multiply":
            return None
        product = product[0].operands
    half, rest = product
    if not half.equals(0.5) or rest.operation != "add" or not rest.operands[1].equals(1):
        return None
    curve = rest.operands[0]
    if curve.operation not in ("tanh", "tl.erf") or curve.operands[0].operation != "multiply":
        return None
    inner = curve.operands[0].operands[1]
    if curve.operation == "tanh":
        if inner.operation != "add" or inner.operands[1].operation != "multiply":
            return None
        inner = inner.operands[0]
    return curve.operation, inner


def _of_choice(condition: Value, x: Value, y: Value) -> tuple[str, Value] | None:
    if condition.operation != "greater":
        return None
    argument = condition.operands[0]
    is_softplus = y.operation == "log1p" and y.operands[0].operation == "exp"
    if is_softplus and y.operands[0].operands[0] is x is argument:
        return "softplus", argument
    if x.equals(1) and y.operation == "where" and y.operands[1].equals(-1) and y.operands[2].equals(0):
        return "sign", argument
    return None
