"""Functions of the field that a graph spells out in several operations, recognised for names and formulas."""

from __future__ import annotations

from tigon_tools.codegen.constants import INVERSE_SQRT_2_PI
from tigon_tools.codegen.values import Value


def known_function(value: Value) -> tuple[str, Value] | None:
    """The function's name and its argument: silu, gelu, softplus, sign..."""
    if value.operation == "multiply":
        return _of_product(*value.operands)
    if value.operation == "where":
        return _of_choice(*value.operands)
    return None


def _of_product(x: Value, y: Value) -> tuple[str, Value] | None:
    for factor, other in ((x, y), (y, x)):
        if factor.operation == "tl.sigmoid" and factor.operands[0] is other:
            return "silu", other
        cdf = _cdf(factor)
        if cdf is not None and cdf[1] is other:
            return ("gelu" if cdf[0] == "tl.erf" else "gelu_tanh"), other
    cdf = _cdf(x, y)
    if cdf is not None:
        return "cdf", cdf[1]
    return _pdf(x, y)


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
