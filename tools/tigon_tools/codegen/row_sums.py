"""Sums of a row as an expert writes them, once it is known that a program has whole rows.

What is the same along the row is multiplied once, after the sum, so that sums of the same elements are one sum. Of a
sum that only picks an element, the element is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence

from tigon_tools.codegen.arithmetic import Arithmetic
from tigon_tools.codegen.rewriting import with_operands
from tigon_tools.codegen.values import Extent, Kind, Value, reachable


def simple_sums(outputs: Sequence[Value], arithmetic: Arithmetic) -> dict[Value, Value]:
    """By each value that the outputs need, what is computed in its place.

    Picked elements stay sums where nothing else would read their tensor.
    """
    sums = _Sums(arithmetic)
    new = [sums.rewritten(value) for value in outputs]
    loads = {value.name for value in reachable(new) if value.operation == "load"}
    picked = {value.name for value in reachable(new) if value.operation == "load_at"}
    return sums.simplified if picked <= loads else {}


class _Sums:
    """Rewrites values one after the other, operands first."""

    def __init__(self, arithmetic: Arithmetic) -> None:
        self._arithmetic = arithmetic
        self.simplified: dict[Value, Value] = {}

    def rewritten(self, root: Value) -> Value:
        for value in reachable([root]):
            if value not in self.simplified:
                operands = tuple(self.simplified[operand] for operand in value.operands)
                if value.operation == "row_sum":
                    self.simplified[value] = self._sum(operands[0])
                else:
                    self.simplified[value] = with_operands(value, operands, self._arithmetic)
        return self.simplified[root]

    def _sum(self, value: Value) -> Value:
        """Over the row."""
        m = self._arithmetic
        if not value.extent & Extent.COLUMNS:
            return m.multiply(m.convert(m.values.size("n_cols"), Kind.FLOAT), value)
        if value.operation == "negate":
            return m.negate(self._sum(value.operands[0]))
        if value.operation == "where":
            return self._sum_of_choice(value)
        factors, divisors, inner = self._parts(value)
        # A square of a scaled number: the scale may be what keeps it from overflowing.
        is_square = inner.operation == "multiply" and inner.operands[0] is inner.operands[1]
        if is_square or not (factors or divisors):
            return m.call("row_sum", value)
        total = self._sum(inner)
        for factor in factors:
            total = m.multiply(factor, total)
        for divisor in divisors:
            total = m.divide(total, divisor)
        return total

    def _sum_of_choice(self, value: Value) -> Value:
        """Of one element that is picked by its column, of all or none of a row's elements, or of any."""
        m = self._arithmetic
        condition, x, y = value.operands
        if condition.operation == "equal" and condition.operands[0].operation == "column_index" and y.equals(0):
            column = condition.operands[1]
            picked = None if column.extent & Extent.COLUMNS else self._at(x, column)
            if picked is not None:
                return picked
        if not condition.extent & Extent.COLUMNS and (x.equals(0) or y.equals(0)):
            return m.where(condition, *(b if b.equals(0) else self._sum(b) for b in (x, y)))
        return m.call("row_sum", value)

    def _parts(self, value: Value) -> tuple[list[Value], list[Value], Value]:
        """Factors and divisors that are the same along the row, and the rest of a product."""
        m = self._arithmetic
        if value.operation == "multiply":
            x, y = value.operands
            outer = [operand for operand in (x, y) if not operand.extent & Extent.COLUMNS]
            if outer:
                factors, divisors, inner = self._parts(y if outer[0] is x else x)
                return [outer[0], *factors], divisors, inner
            (x_factors, x_divisors, x_inner), (y_factors, y_divisors, y_inner) = self._parts(x), self._parts(y)
            factors, divisors = x_factors + y_factors, x_divisors + y_divisors
            inner = m.multiply(x_inner, y_inner) if factors or divisors else value
            return factors, divisors, inner
        if value.operation == "divide" and not value.operands[1].extent & Extent.COLUMNS:
            factors, divisors, inner = self._parts(value.operands[0])
            return factors, [*divisors, value.operands[1]], inner
        return [], [], value

    def _at(self, value: Value, column: Value) -> Value | None:
        """What a value is in one column; None where that takes more than an element of each tensor."""
        known: dict[Value, Value] = {}
        for part in reachable([value]):
            if not part.extent & Extent.COLUMNS:
                known[part] = part
            elif part.operation == "load":
                known[part] = self._arithmetic.values.load_at(part, column)
            elif part.operation == "column_index":
                known[part] = column
            elif all(operand in known for operand in part.operands):
                known[part] = with_operands(part, tuple(known[operand] for operand in part.operands), self._arithmetic)
            else:
                return None
        return known[value]
