"""What a kernel computes, as a graph of values.

A value is the same wherever it is built (equal operands, equal operation), so a common
subexpression exists once. Everything floating is float32: storage types appear only in `round`
values, where the reference casts on purpose, and where tensors are loaded and stored.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace


class Kind(enum.Enum):
    """What a value holds in the kernel."""

    FLOAT = "float"
    INT = "int"
    BOOL = "bool"


class Extent(enum.IntFlag):
    """What a value has one of: a number for each row, for each column, for each of both, or one for all."""

    ONE = 0
    ROWS = 1
    COLUMNS = 2
    CELLS = 3


Constant = bool | int | float
FloatTypes = frozenset[str]
"""A storage type: torch names ("float32") and names of tensors whose type it follows, promoted."""


@dataclass(frozen=True, eq=False)
class Value:
    """One value of the kernel; identity is equality, see `Values`.

    operation: "load", "load_at", "scalar", "constant", "round", "convert", an operator ("add", "less"), or the
        name of a function ("exp", "tanh").
    name: of the tensor or scalar, for "load", "load_at" and "scalar".
    constant: for "constant".
    uniform: the same for every element; computed from scalars alone.
    types: for "round", what it rounds to.
    extent: for a tensor what it has, for the rest what its operands have together, less what is reduced.
    element: for "load": which one of a small vector that is no part of the rows.
    """

    operation: str
    operands: tuple[Value, ...] = ()
    kind: Kind = Kind.FLOAT
    name: str = ""
    constant: Constant = 0
    uniform: bool = False
    types: FloatTypes = frozenset()
    extent: Extent = Extent.ONE
    element: int | None = None

    @property
    def is_constant(self) -> bool:
        return self.operation == "constant"

    @property
    def is_leaf(self) -> bool:
        return not self.operands

    def equals(self, number: float) -> bool:
        """A constant of this value (False is not 0)."""
        return self.is_constant and not isinstance(self.constant, bool) and self.constant == number


REDUCED = {
    "row_sum": Extent.COLUMNS,
    "row_max": Extent.COLUMNS,
    "row_min": Extent.COLUMNS,
    "column_sum": Extent.ROWS,
}
"""Reductions, and what they take from an extent: a row's sum has no columns left."""


@dataclass
class Values:
    """Makes values, each once."""

    _known: dict[tuple[object, ...], Value] = field(default_factory=dict)

    def load(self, name: str, kind: Kind, extent: Extent = Extent.CELLS, element: int | None = None) -> Value:
        return self._intern(Value("load", kind=kind, name=name, extent=extent, element=element))

    def load_at(self, load: Value, column: Value) -> Value:
        """The one element of each row of a tensor, or of a vector of the columns, that is in a column."""
        kind, extent = load.kind, column.extent | (load.extent & ~Extent.COLUMNS)
        return self._intern(Value("load_at", (column,), kind, load.name, extent=extent))

    def size(self, name: str) -> Value:
        """`n_rows` or `n_cols`: a number that the launcher knows."""
        return self._intern(Value("size", kind=Kind.INT, name=name, uniform=True))

    def column_index(self) -> Value:
        """Which column an element is in."""
        return self._intern(Value("column_index", kind=Kind.INT, extent=Extent.COLUMNS))

    def scalar(self, name: str, kind: Kind) -> Value:
        return self._intern(Value("scalar", kind=kind, name=name, uniform=True))

    def constant(self, number: Constant) -> Value:
        kind = Kind.BOOL if isinstance(number, bool) else Kind.INT if isinstance(number, int) else Kind.FLOAT
        return self._intern(Value("constant", kind=kind, constant=number, uniform=True))

    def make(self, operation: str, *operands: Value, kind: Kind = Kind.FLOAT, types: FloatTypes = frozenset()) -> Value:
        uniform = all(operand.uniform for operand in operands)
        extent = Extent.ONE
        for operand in operands:
            extent |= operand.extent
        extent &= ~REDUCED.get(operation, Extent.ONE)
        return self._intern(Value(operation, operands, kind, uniform=uniform, types=types, extent=extent))

    def remade(self, value: Value, operands: tuple[Value, ...]) -> Value:
        """The same operation of other operands."""
        if value.operation == "load_at":
            return self._intern(replace(value, operands=operands))
        return self.make(value.operation, *operands, kind=value.kind, types=value.types)

    def _intern(self, value: Value) -> Value:
        constant: object = value.constant
        if isinstance(constant, float) and math.isnan(constant):
            constant = "nan"  # NaN is not equal to itself
        sign = math.copysign(1.0, value.constant) if isinstance(value.constant, float) else 1.0
        operands = tuple(id(operand) for operand in value.operands)
        key = (
            value.operation, operands, value.kind, value.name, type(value.constant), constant, sign, value.types,
            value.extent, value.element,
        )  # fmt: skip
        return self._known.setdefault(key, value)


def reachable(roots: Iterable[Value]) -> Iterator[Value]:
    """Every value that the roots need, operands before their users, each once."""
    seen: set[Value] = set()
    stack = [(root, False) for root in reversed(list(roots))]
    while stack:
        value, operands_done = stack.pop()
        if operands_done:
            yield value
        elif value not in seen:
            seen.add(value)
            stack.append((value, True))
            stack.extend((operand, False) for operand in reversed(value.operands) if operand not in seen)
