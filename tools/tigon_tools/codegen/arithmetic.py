"""Arithmetic on values as an expert writes it: nothing multiplied by one, small powers as products.

Each rule is exact in float32, except that constants are folded in double precision.
"""

from __future__ import annotations

from collections.abc import Callable

from tigon_tools.codegen.values import Constant, FloatTypes, Kind, Value, Values

COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")

_FOLD: dict[str, Callable[[float, float], float]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "equal": lambda x, y: x == y,
    "not_equal": lambda x, y: x != y,
}

SIGMOID_IS_ONE_FROM = 17.4
"""sigmoid(x) rounds to 1 in float32 from here on: exp(-x) is below half of 2**-24."""


class Arithmetic:
    """Builds values; every method gives the simplest value that means the same."""

    def __init__(self) -> None:
        self.values = Values()

    def constant(self, number: Constant) -> Value:
        return self.values.constant(number)

    def call(self, function: str, *operands: Value, kind: Kind = Kind.FLOAT) -> Value:
        return self.values.make(function, *operands, kind=kind)

    def convert(self, value: Value, kind: Kind, types: FloatTypes = frozenset()) -> Value:
        """From one kind to another; `types` names the integer type ("int64", "int32", ...)."""
        if value.is_constant:
            cast = {Kind.FLOAT: float, Kind.INT: int, Kind.BOOL: bool}[kind]
            return self.constant(cast(value.constant))
        if kind is Kind.BOOL:
            return value if value.kind is Kind.BOOL else self.compare("not_equal", value, self.constant(0))
        if value.kind is kind and (kind is Kind.FLOAT or value.types == types):
            return value
        return self.values.make("convert", value, kind=kind, types=types)

    def round(self, value: Value, types: FloatTypes) -> Value:
        """To a storage type and back to float32, as a cast in the reference does."""
        value = self.convert(value, Kind.FLOAT)
        if value.is_constant or types == {"float32"} or (value.operation == "round" and value.types == types):
            return value
        if value.operation == "load" and types == {value.name}:
            return value
        return self.values.make("round", value, types=types)

    def add(self, x: Value, y: Value) -> Value:
        if x.equals(0) or y.equals(0):
            return y if x.equals(0) else x
        if y.operation == "negate":
            return self.subtract(x, y.operands[0])
        if x.operation == "negate":
            return self.subtract(y, x.operands[0])
        if x is y:
            return self.multiply(self.constant(2), x)
        if x.operation == y.operation == "where" and x.operands[0] is y.operands[0]:
            condition, (x_true, x_false), (y_true, y_false) = x.operands[0], x.operands[1:], y.operands[1:]
            if x_false.equals(0) and y_true.equals(0):
                return self.where(condition, x_true, y_false)
            if x_true.equals(0) and y_false.equals(0):
                return self.where(condition, y_true, x_false)
        return self._binary("add", x, y)

    def subtract(self, x: Value, y: Value) -> Value:
        if y.equals(0):
            return x
        if x.equals(0):
            return self.negate(y)
        if y.operation == "negate":
            return self.add(x, y.operands[0])
        return self._binary("subtract", x, y)

    def multiply(self, x: Value, y: Value) -> Value:
        """Constants and scalars come first, and constants become one."""
        if _weight(y) < _weight(x):
            x, y = y, x
        if x.equals(1):
            return y
        if x.equals(-1):
            return self.negate(y)
        if x.is_constant and y.operation == "multiply" and y.operands[0].is_constant:
            return self.multiply(self._binary("multiply", x, y.operands[0]), y.operands[1])
        if x.uniform and y.operation == "where" and any(branch.equals(0) for branch in y.operands[1:]):
            condition, *branches = y.operands
            return self.where(condition, *(b if b.equals(0) else self.multiply(x, b) for b in branches))
        if y.operation == "divide" and y.operands[0].equals(1):
            return self.divide(x, y.operands[1])
        if x.operation == "negate" and not x.is_constant:
            return self.negate(self.multiply(x.operands[0], y))
        if y.operation == "negate":
            return self.negate(self.multiply(x, y.operands[0]))
        return self._binary("multiply", x, y)

    def divide(self, x: Value, y: Value) -> Value:
        """True division. (g * exp(z)) / (exp(z) + 1) is g * sigmoid(z), which does not overflow."""
        if y.equals(1):
            return self.convert(x, Kind.FLOAT)
        if y.equals(-1):
            return self.negate(self.convert(x, Kind.FLOAT))
        if x.operation == "negate":
            return self.negate(self.divide(x.operands[0], y))
        if x.is_constant and y.is_constant and y.constant != 0:
            return self.constant(x.constant / y.constant)
        exponential = y.operands[0] if y.operation == "add" and y.operands[1].equals(1) else None
        if exponential is not None and exponential.operation == "exp" and x.operation == "multiply":
            for exponential_factor, other in (x.operands, x.operands[::-1]):
                if exponential_factor is exponential:
                    return self.multiply(other, self.call("tl.sigmoid", *exponential.operands))
        return self.values.make("divide", x, y)

    def negate(self, x: Value) -> Value:
        if x.is_constant:
            return self.constant(-x.constant)
        if x.operation == "negate":
            return x.operands[0]
        if x.operation == "subtract":
            return self.subtract(x.operands[1], x.operands[0])
        return self.values.make("negate", x, kind=x.kind)

    def square(self, x: Value) -> Value:
        return self.multiply(x, x)

    def power(self, x: Value, exponent: Value) -> Value:
        """Exponents that are small integers or halves become products and roots."""
        for number, product in self._powers().items():
            if exponent.equals(number):
                return product(x)
        return self.call("pow", self.convert(x, Kind.FLOAT), self.convert(exponent, Kind.FLOAT))

    def _powers(self) -> dict[float, Callable[[Value], Value]]:
        one = self.constant(1)
        return {
            0: lambda x: self.constant(1.0),
            1: lambda x: x,
            2: self.square,
            3: lambda x: self.multiply(self.square(x), x),
            4: lambda x: self.square(self.square(x)),
            0.5: lambda x: self.call("tl.sqrt", x),
            -0.5: lambda x: self.call("tl.rsqrt", x),
            -1: lambda x: self.divide(one, x),
            -2: lambda x: self.divide(one, self.square(x)),
        }

    def compare(self, comparison: str, x: Value, y: Value) -> Value:
        """`relu(x)` compares with zero as `x` does."""
        if x.operation == "relu" and y.equals(0) and comparison in ("less_equal", "greater"):
            x = x.operands[0]
        if x.is_constant and y.is_constant:
            return self.constant(bool(_FOLD[comparison](x.constant, y.constant)))
        return self.values.make(comparison, x, y, kind=Kind.BOOL)

    def logical_not(self, x: Value) -> Value:
        x = self.convert(x, Kind.BOOL)
        if x.operation == "not":
            return x.operands[0]
        return self.values.make("not", x, kind=Kind.BOOL)

    def logical(self, operation: str, x: Value, y: Value) -> Value:
        """ "and", "or", "xor" of truth values."""
        return self.bitwise(operation, self.convert(x, Kind.BOOL), self.convert(y, Kind.BOOL))

    def bitwise(self, operation: str, x: Value, y: Value) -> Value:
        kind = Kind.BOOL if x.kind is Kind.BOOL and y.kind is Kind.BOOL else Kind.INT
        return self.values.make(operation, x, y, kind=kind)

    def where(self, condition: Value, x: Value, y: Value) -> Value:
        condition = self.convert(condition, Kind.BOOL)
        if x is y:
            return x
        if condition.is_constant:
            return x if condition.constant else y
        if condition.operation == "not":
            return self.where(condition.operands[0], y, x)
        if self._is_linear_tail_of_sigmoid(condition, x, y):
            return y
        if (
            _asks_for_nan(condition)
            and x.is_constant
            and x.constant != x.constant
            and _passes_nan(y, condition.operands[0])
        ):
            return y
        x, y = self._without_relu(condition, x, y)
        kind = promoted(x, y)
        return self.values.make("where", condition, self.convert(x, kind), self.convert(y, kind), kind=kind)

    def _without_relu(self, condition: Value, x: Value, y: Value) -> tuple[Value, Value]:
        """relu(v) is v where v > 0, which is how its gradient uses it."""
        if condition.operation not in ("less_equal", "greater") or not condition.operands[1].equals(0):
            return x, y
        argument = condition.operands[0]
        relu = self.values.make("relu", argument, kind=argument.kind)
        if condition.operation == "greater":
            return self._replace(x, relu, argument), y
        return x, self._replace(y, relu, argument)

    def _replace(self, value: Value, old: Value, new: Value) -> Value:
        """`value` with `new` for `old`, looking through products and sums only."""
        if value is old:
            return new
        rebuild: dict[str, Callable[..., Value]] = {
            "add": self.add,
            "subtract": self.subtract,
            "multiply": self.multiply,
            "divide": self.divide,
            "negate": self.negate,
        }
        if value.operation not in rebuild:
            return value
        operands = [self._replace(operand, old, new) for operand in value.operands]
        if all(after is before for after, before in zip(operands, value.operands, strict=True)):
            return value
        return rebuild[value.operation](*operands)

    def _is_linear_tail_of_sigmoid(self, condition: Value, x: Value, y: Value) -> bool:
        """where(z > 20, g, g * sigmoid(z)): the gradient of softplus; the two agree in float32."""
        if condition.operation != "greater" or not condition.operands[1].is_constant:
            return False
        z, threshold = condition.operands
        if threshold.constant < SIGMOID_IS_ONE_FROM or y.operation != "multiply" or x not in y.operands:
            return False
        sigmoid = y.operands[0] if y.operands[1] is x else y.operands[1]
        return sigmoid.operation == "tl.sigmoid" and sigmoid.operands[0] is z

    def maximum(self, x: Value, y: Value) -> Value:
        if y.equals(0) and x.kind is Kind.FLOAT:
            return self.relu(x)
        return self.values.make("maximum", x, y, kind=promoted(x, y))

    def minimum(self, x: Value, y: Value) -> Value:
        if x.operation == "relu" and x.kind is Kind.FLOAT and y.is_constant and y.constant > 0:
            return self.clamp(x.operands[0], self.constant(0), y)
        return self.values.make("minimum", x, y, kind=promoted(x, y))

    def clamp(self, x: Value, low: Value | None, high: Value | None) -> Value:
        """NaN passes; where the bounds are the wrong way round, the upper one counts, as in PyTorch."""
        if low is not None and high is not None and x.kind is Kind.FLOAT:
            return self.call("clamp", x, self.convert(low, Kind.FLOAT), self.convert(high, Kind.FLOAT))
        clamped = x if low is None else self.maximum(x, low)
        return clamped if high is None else self.minimum(clamped, high)

    def absolute(self, x: Value) -> Value:
        return self.constant(abs(x.constant)) if x.is_constant else self.call("tl.abs", x, kind=x.kind)

    def relu(self, x: Value) -> Value:
        return x if x.operation == "relu" else self.values.make("relu", x, kind=x.kind)

    def _binary(self, operation: str, x: Value, y: Value) -> Value:
        if x.is_constant and y.is_constant:
            return self.constant(_FOLD[operation](x.constant, y.constant))
        return self.values.make(operation, x, y, kind=promoted(x, y))


def _asks_for_nan(condition: Value) -> bool:
    return condition.operation == "not_equal" and condition.operands[0] is condition.operands[1]


def _passes_nan(value: Value, source: Value) -> bool:
    """Whether NaN of the source makes NaN of the value, whatever else it is made of."""
    if value is source:
        return True
    if value.operation == "where" and value.operands[0].operation == "equal" and source in value.operands[0].operands:
        return _passes_nan(value.operands[2], source)  # NaN equals nothing
    arithmetic = value.operation in ("add", "subtract", "multiply", "divide", "negate", "tl.log", "exp")
    return arithmetic and any(_passes_nan(operand, source) for operand in value.operands)


def promoted(*operands: Value) -> Kind:
    """The kind of an arithmetic result, as PyTorch promotes categories."""
    kinds = {operand.kind for operand in operands}
    for kind in (Kind.FLOAT, Kind.INT):
        if kind in kinds:
            return kind
    return Kind.BOOL


def _weight(value: Value) -> int:
    """Order of factors: constants, then scalars, then tensors as the reference has them."""
    return 0 if value.is_constant else 1 if value.uniform else 2
