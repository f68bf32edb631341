"""A value of a kernel over rows as a Triton expression: reductions, and the masks they need."""

from __future__ import annotations

from collections.abc import Callable

from tigon_tools.codegen.expression import Expressions, Name
from tigon_tools.codegen.values import Extent, Kind, Value, reachable

ATOM = 8
"""The level of what needs no parentheses (`expression._ATOM`)."""

FAST = frozenset({"exp"})
"""Functions that are Triton's own here, though libdevice's are more accurate (`point_ops.LIBDEVICE` says by how much).

Kernels over rows are limited by instructions as much as by memory: libdevice's exp has four times those of `tl.exp`,
which Liger and Inductor use as well."""

_POLYNOMIAL = frozenset({"multiply", "add", "subtract", "negate", "round", "load", "scalar", "constant"})
"""Operations that make no NaN or infinity of zeros, so that a masked zero stays what it is."""


class RowExpressions(Expressions):
    """Prints values of a tile of BLOCK_ROWS × BLOCK_SIZE.

    mask: the name of the tile's mask. is_cells: whether a tensor has rows, by its name.
    """

    def __init__(
        self, name: Name, pointer_type: Callable[[Value], str], mask: str, is_cells: Callable[[str], bool]
    ) -> None:
        super().__init__(name, pointer_type)
        self._mask = mask
        self._is_cells = is_cells

    def _define(self, value: Value) -> tuple[str, int]:
        if value.operation == "column_index":
            return "col_offsets", ATOM
        if value.operation == "load_at":
            return self._picked(value), ATOM
        if value.operation in ("row_sum", "row_max", "row_min"):
            return self.reduced(value.operation, self.masked(value)), ATOM
        return super()._define(value)

    def _call(self, value: Value) -> str:
        text = super()._call(value)
        return f"tl.{text}" if value.operation in FAST else text

    def _picked(self, value: Value) -> str:
        """One element of each row. A column that is none is not read."""
        (column,) = value.operands
        index = self._operand(column, ATOM)
        row = f"row_idx * {value.name}_row_stride + " if self._is_cells(value.name) else ""
        mask = f"row_mask & ({index} >= 0) & ({index} < n_cols)"
        cast = ".to(tl.float32)" if value.kind is Kind.FLOAT else ""
        return f"tl.load({value.name}_ptr + {row}{index}, mask={mask}, other=0){cast}"

    @staticmethod
    def reduced(operation: str, text: str) -> str:
        """A tile's reduction over its columns."""
        function = {"row_sum": "tl.sum", "row_max": "tl.max", "row_min": "tl.min"}[operation]
        return f"{function}({text}, axis=1, keep_dims=True)"

    def operand(self, value: Value) -> str:
        """A value as an operand of a difference: its name, or in parentheses where it needs them."""
        return self._operand(value, ATOM)

    def masked(self, reduction: Value) -> str:
        """The operand, with what the reduction ignores where there is no element."""
        (operand,) = reduction.operands
        text = self._operand(operand, 0)
        if reduction.operation == "row_sum" and is_zero_beyond(operand, Extent.COLUMNS):
            return text
        return f"tl.where({self._mask}, {text}, {NEUTRAL[reduction.operation]})"

    def masked_cell(self, operand: Value, *along: Extent) -> str:
        """The summand of a sum over rows, or over rows and columns."""
        text = self._operand(operand, 0)
        zero = all(is_zero_beyond(operand, extent) for extent in along)
        return text if zero else f"tl.where({self._mask}, {text}, 0.0)"


NEUTRAL = {"row_sum": "0.0", "row_max": 'float("-inf")', "row_min": 'float("inf")'}
"""What changes a reduction by nothing."""


def is_zero_beyond(value: Value, along: Extent) -> bool:
    """Whether a value is 0 beyond the last column (or row), since what it is a product of is loaded as 0 there.

    True only for polynomials: 0 / 0 and 0 * inf would be NaN. A number of the row may be any where columns end.
    """
    if not _is_tame(value, along):
        return False
    if value.operation == "load":
        return bool(value.extent & along)
    if value.operation == "multiply":
        return any(is_zero_beyond(operand, along) for operand in value.operands)
    if value.operation in ("add", "subtract", "negate", "round"):
        return all(is_zero_beyond(operand, along) for operand in value.operands)
    return False


def _is_tame(value: Value, along: Extent) -> bool:
    """No operation on the way that could make more of a zero; along columns a row's own numbers are given."""
    stack = [value]
    while stack:
        part = stack.pop()
        if along is Extent.COLUMNS and not part.extent & Extent.COLUMNS:
            continue
        if part.operation not in _POLYNOMIAL:
            return False
        stack.extend(part.operands)
    return True


def levels(values: list[Value]) -> dict[Value, int]:
    """For each value how many reductions of the row have to be done one after the other before it is known."""
    known: dict[Value, int] = {}
    for value in reachable(values):
        own = max((known[operand] for operand in value.operands), default=0)
        known[value] = own + (value.operation in NEUTRAL)
    return known
