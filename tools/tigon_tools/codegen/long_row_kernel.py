"""The text of a kernel over rows that are longer than a block: read in pieces, once for each step of reductions.

A reduction that needs no other is made in the first pass, one that needs it in the second, and what is stored for
each element in the last. A pass reads again what it needs: registers do not hold the row. The largest of a row and the
sum of exponentials less it, softmax's two steps, are made in one pass.
"""

from __future__ import annotations

from tigon_tools.codegen.known_functions import exponentials_below, largest_of_row
from tigon_tools.codegen.row_expression import NEUTRAL, RowExpressions, levels
from tigon_tools.codegen.row_kernel import RowKernelText, row_numbers
from tigon_tools.codegen.values import Extent, Value

_INITIAL = {
    "row_sum": "tl.zeros((BLOCK_ROWS, BLOCK_SIZE), dtype=tl.float32)",
    "row_max": 'tl.full((BLOCK_ROWS, BLOCK_SIZE), float("-inf"), dtype=tl.float32)',
    "row_min": 'tl.full((BLOCK_ROWS, BLOCK_SIZE), float("inf"), dtype=tl.float32)',
}


class LongRowKernelText(RowKernelText):
    """Writes a `RowKernelPlan` without sums over rows down, for rows of any length."""

    def lines(self) -> list[str]:
        self._assign_loads()
        return self._function(self._plan.name, self._body())

    def _body(self) -> list[str]:
        scalars = self._scalars()
        passes = self._passes()
        return [
            "# one program computes BLOCK_ROWS whole rows, in pieces of BLOCK_SIZE columns",
            f"row_idx = {row_numbers('tl.program_id(0)')}",
            "row_mask = row_idx < n_rows",
            *scalars,
            *self._load_lines(Extent.ONE, Extent.ROWS),
            *passes,
        ]

    def _passes(self) -> list[str]:
        """A loop over the columns for each level of reductions, the rows' own numbers between them."""
        order = self._named_statements()
        lines = self._constants
        level = levels([value for _, value in self._plan.outputs])
        online = _online_sums(order, level)
        last = max(level.values(), default=0)
        for step in range(1, last + 1):
            lines += self._row_values(order, level, step - 1)
            reductions = [v for v in order if v.operation in NEUTRAL and level[v] == step and v not in online.values()]
            if reductions:
                lines += self._reducing_pass(reductions, order, online)
        lines += self._row_values(order, level, last)
        return [*lines, *self._storing_pass(order), *self._store_lines(Extent.ROWS)]

    def _worth_a_name(self) -> set[Value]:
        """Every reduction: a pass makes it."""
        named = super()._worth_a_name()
        for value in self._plan.values:
            if value.operation in NEUTRAL:
                self._names.name(value)
                named.add(value)
        return named

    def _row_values(self, order: list[Value], level: dict[Value, int], step: int) -> list[str]:
        """Numbers of the row that are known after so many passes."""
        return [
            self._statement(value)
            for value in order
            if value.operation not in NEUTRAL and not value.extent & Extent.COLUMNS and level[value] == step
        ]

    def _reducing_pass(self, reductions: list[Value], order: list[Value], online: dict[Value, Value]) -> list[str]:
        body = self._piece([value.operands[0] for value in reductions], order)
        start, finish = [], []
        for value in reductions:
            name = self._names.name(value)
            if value in online:
                total = self._names.name(online[value])
                start += [
                    f'{name} = tl.full((BLOCK_ROWS, 1), float("-inf"), dtype=tl.float32)',
                    f"{total} = tl.zeros((BLOCK_ROWS, 1), dtype=tl.float32)",
                ]
                body += self._online_step(value, online[value])
                continue
            start.append(f"{name}_tile = {_INITIAL[value.operation]}")
            text = self._expressions.masked(value)
            if value.operation == "row_sum":
                body.append(f"{name}_tile += {text}")
            else:
                function = "tl.maximum" if value.operation == "row_max" else "tl.minimum"
                body.append(f"{name}_tile = {function}({name}_tile, {text})")
            finish.append(f"{name} = {RowExpressions.reduced(value.operation, f'{name}_tile')}")
        return ["", *start, *_loop(body), *finish]

    def _online_step(self, largest: Value, total: Value) -> list[str]:
        """Milakov and Gimelshein (arXiv:1805.02867): the sum so far is scaled whenever the largest grows."""
        name, sum_name = self._names.name(largest), self._names.name(total)
        function = f"tl.{total.operands[0].operation.removeprefix('tl.')}"
        magnitude = "tl.abs(running_max)" if _masks_infinity(total) else "-running_max"
        element = self._expressions.operand(largest.operands[0])
        return [
            f"running_max = tl.maximum({name}, {RowExpressions.reduced('row_max', self._expressions.masked(largest))})",
            f'shift = tl.where({magnitude} == float("inf"), 0.0, running_max)  # inf - inf is NaN',
            f"{sum_name} *= {function}({name} - shift)",
            f"{sum_name} += tl.sum(tl.where({self._mask}, {function}({element} - shift), 0.0), axis=1, keep_dims=True)",
            f"{name} = running_max",
        ]

    def _storing_pass(self, order: list[Value]) -> list[str]:
        stored = [value for tensor, value in self._plan.outputs if self._plan.extent(tensor.name) == Extent.CELLS]
        if not stored:
            return []
        return ["", *_loop([*self._piece(stored, order), *self._store_lines(Extent.CELLS)])]

    def _piece(self, wanted: list[Value], order: list[Value]) -> list[str]:
        """Loads and computation for one piece of the row, as far as `wanted` needs them."""
        needed = _within_columns(wanted)
        loads = [value.name for value in needed if value.operation == "load"]
        return [
            "col_offsets = start + tl.arange(0, BLOCK_SIZE)[None, :]",
            "col_mask = col_offsets < n_cols",
            f"{self._mask} = row_mask & col_mask",
            *self._load_lines(Extent.COLUMNS, Extent.CELLS, only=loads),
            *(self._statement(value) for value in order if value in needed and not value.is_leaf),
        ]


def _online_sums(order: list[Value], level: dict[Value, int]) -> dict[Value, Value]:
    """By the largest of a row, the sum over exp of the row less it."""
    found: dict[Value, Value] = {}
    for value in order:
        below = exponentials_below(value)
        largest = largest_of_row(below[1]) if below is not None else None
        if largest is not None and level[value] == level[largest] + 1:
            found.setdefault(largest, value)
    return found


def _masks_infinity(total: Value) -> bool:
    """Whether an infinite largest counts as 0, so that exp(inf) makes the sum infinite and not NaN."""
    below = exponentials_below(total)
    return below is not None and below[1].operation == "where"


def _within_columns(wanted: list[Value]) -> set[Value]:
    """Everything that differs from column to column and that these values are made of."""
    found: set[Value] = set()
    stack = list(wanted)
    while stack:
        value = stack.pop()
        if value in found or not value.extent & Extent.COLUMNS:
            continue
        found.add(value)
        stack.extend(value.operands)
    return found


def _loop(body: list[str]) -> list[str]:
    return ["for start in range(0, n_cols, BLOCK_SIZE):", *(f"    {line}" for line in body)]
