"""A value as a Triton expression.

Parentheses stand where the order of evaluation needs them, and only there: the kernel computes in
the order of the traced graph. One exception reads better and costs nothing: a constant or scalar
factor in front of a product needs no parentheses after it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tigon_tools.codegen.constants import WRITTEN_CONSTANTS
from tigon_tools.codegen.values import Kind, Value

# Python's levels of precedence, loosest first.
_COMPARE, _OR, _XOR, _AND, _SHIFT, _SUM, _PRODUCT, _UNARY, _ATOM = range(9)

_OPERATORS: dict[str, tuple[str, int]] = {
    "less": ("<", _COMPARE),
    "less_equal": ("<=", _COMPARE),
    "greater": (">", _COMPARE),
    "greater_equal": (">=", _COMPARE),
    "equal": ("==", _COMPARE),
    "not_equal": ("!=", _COMPARE),
    "or": ("|", _OR),
    "xor": ("^", _XOR),
    "and": ("&", _AND),
    "left_shift": ("<<", _SHIFT),
    "right_shift": (">>", _SHIFT),
    "add": ("+", _SUM),
    "subtract": ("-", _SUM),
    "multiply": ("*", _PRODUCT),
    "divide": ("/", _PRODUCT),
}
_PREFIXES = {"negate": "-", "not": "~"}
_ASSOCIATIVE_LEFT = {_OR, _XOR, _AND, _SUM, _PRODUCT}

PROPAGATE_NAN = "propagate_nan=tl.PropagateNan.ALL"
"""Without it a Triton maximum drops NaN, where PyTorch passes it on."""

Name = Callable[[Value], str | None]
"""The name of a value that has one in the kernel."""


class Expressions:
    """Prints values.

    name: of a value that is a variable of the kernel, else None.
    pointer_type: the expression of a storage type in the kernel (`a_ptr.dtype.element_ty`).
    """

    def __init__(self, name: Name, pointer_type: Callable[[Value], str]) -> None:
        self._name = name
        self._pointer_type = pointer_type

    def text(self, value: Value) -> str:
        """The right-hand side that defines `value`, whether or not it has a name."""
        return self._define(value)[0]

    def _operand(self, value: Value, level: int, argument: bool = False) -> str:
        """argument: of a function, where an integer would make an integer of the result."""
        name = self._name(value)
        if name is not None:
            return name
        if value.is_constant:
            text, own_level = self._constant(value, argument)
        else:
            text, own_level = self._define(value)
        return f"({text})" if own_level < level else text

    def _define(self, value: Value) -> tuple[str, int]:
        operation, operands = value.operation, value.operands
        if value.is_constant:
            return self._constant(value, argument=True)
        if operation in ("load", "scalar", "size"):
            return (value.name if value.element is None else f"{value.name}[{value.element}]"), _ATOM
        if operation in _OPERATORS:
            return self._infix(value)
        if operation == "negate" and operands[0].operation in ("multiply", "divide"):
            text = self._operand(operands[0], _PRODUCT)  # -(x * y) is -x * y
            return (f"-({text})" if text.startswith("-") else f"-{text}"), _UNARY if self._name(
                operands[0]
            ) else _PRODUCT
        if operation in _PREFIXES:
            return _PREFIXES[operation] + self._operand(operands[0], _UNARY), _UNARY
        if operation == "round":
            inner = self._operand(operands[0], _ATOM)
            return f"{inner}.to({self._pointer_type(value)}).to(tl.float32)", _ATOM
        if operation == "convert":
            target = "tl.float32" if value.kind is Kind.FLOAT else f"tl.{next(iter(value.types))}"
            if value.uniform:  # an int argument of 1 is a constexpr, which has no `to`
                return f"tl.cast({self._operand(operands[0], _COMPARE)}, {target})", _ATOM
            return f"{self._operand(operands[0], _ATOM)}.to({target})", _ATOM
        return self._call(value), _ATOM

    def _call(self, value: Value) -> str:
        operation = value.operation
        arguments = [self._operand(operand, _COMPARE, argument=True) for operand in value.operands]
        if operation == "relu":
            arguments.append("0.0" if value.kind is Kind.FLOAT else "0")
        name = {
            "where": "tl.where",
            "relu": "tl.maximum",
            "maximum": "tl.maximum",
            "minimum": "tl.minimum",
            "clamp": "tl.clamp",
        }.get(operation, operation)
        if operation in ("relu", "maximum", "minimum", "clamp") and value.kind is Kind.FLOAT:
            arguments.append(PROPAGATE_NAN)
        return f"{name}({', '.join(arguments)})"

    def _infix(self, value: Value) -> tuple[str, int]:
        symbol, level = _OPERATORS[value.operation]
        left, right = value.operands
        if value.operation == "multiply" and self._starts_with_power_of_two(right):
            constant, rest = right.operands
            if not left.uniform:
                factor = self._operand(constant, _PRODUCT)
                terms = (self._operand(left, _PRODUCT), self._operand(rest, _UNARY))
                return " * ".join((factor, *terms)), level
        left_level = level if level in _ASSOCIATIVE_LEFT else level + 1
        right_level = level + 1
        if value.operation == "multiply" and left.uniform and right.operation in ("multiply", "divide"):
            right_level = level
        left_text, right_text = self._operand(left, left_level), self._operand(right, right_level)
        if right_text.startswith("-") and level in (_SUM, _PRODUCT):
            right_text = f"({right_text})"
        if value.operation == "divide" and _may_be_constexpr(left) and _may_be_constexpr(right):
            right_text = self._divisor(right, right_text)
        return f"{left_text} {symbol} {right_text}", level

    def _divisor(self, value: Value, text: str) -> str:
        """A number that the compiler may know: it would raise where that is 0. An argument that it knows is 1."""
        return text if value.is_leaf else f"tl.cast({self._operand(value, _COMPARE)}, tl.float32)"

    def _starts_with_power_of_two(self, value: Value) -> bool:
        """Such a factor may stand anywhere in a product: it changes no rounding."""
        if value.operation != "multiply" or self._name(value) is not None:
            return False
        constant = value.operands[0]
        return constant.is_constant and constant.constant != 0 and abs(math.frexp(constant.constant)[0]) == 0.5

    @staticmethod
    def _constant(value: Value, argument: bool) -> tuple[str, int]:
        number = value.constant
        if isinstance(number, bool):
            return str(number), _ATOM
        if isinstance(number, int):
            return str(number), _ATOM if number >= 0 else _UNARY
        if math.isnan(number):
            return 'float("nan")', _ATOM
        if math.isinf(number):
            return f'float("{"-" if number < 0 else ""}inf")', _ATOM
        if number in WRITTEN_CONSTANTS:
            return WRITTEN_CONSTANTS[number], _PRODUCT
        if not argument and number.is_integer() and abs(number) < 1e6:
            return str(int(number)), _ATOM if number >= 0 else _UNARY
        return repr(number), _ATOM if number >= 0 else _UNARY


def _may_be_constexpr(value: Value) -> bool:
    """Whether Triton computes it while it compiles: an integer argument of 1 is a constexpr there."""
    if value.is_leaf:
        return value.is_constant or value.operation == "size" or (value.uniform and value.kind is Kind.INT)
    return value.operation in _OPERATORS and all(_may_be_constexpr(operand) for operand in value.operands)
