"""The text of a kernel over rows that are longer than a block: read in pieces, once for each step of reductions.

A reduction that needs no other is made in the first pass, one that needs it in the second, and what is stored for
each element in the last. A pass reads again what it needs: registers do not hold the row.
"""

from __future__ import annotations

from tigon_tools.codegen.row_expression import NEUTRAL, RowExpressions, levels
from tigon_tools.codegen.row_kernel import RowKernelText, row_numbers
from tigon_tools.codegen.row_launcher import long_rows_name
from tigon_tools.codegen.values import Extent, Value

_INITIAL = {
    "row_sum": "tl.zeros((BLOCK_ROWS, BLOCK_SIZE), dtype=tl.float32)",
    "row_max": 'tl.full((BLOCK_ROWS, BLOCK_SIZE), float("-inf"), dtype=tl.float32)',
    "row_min": 'tl.full((BLOCK_ROWS, BLOCK_SIZE), float("inf"), dtype=tl.float32)',
}


class LongRowKernelText(RowKernelText):
    """Writes the same `RowKernelPlan` down for rows of any length."""

    def lines(self) -> list[str]:
        code = self._body()
        return self._function(long_rows_name(self._plan.name), code)

    def _body(self) -> list[str]:
        head = [*self._scalars(), *self._load_lines(Extent.ONE)]
        rows = [
            "row_mask = row_idx < n_rows",
            *self._load_lines(Extent.ROWS),
        ]
        self._load_lines(Extent.COLUMNS, Extent.CELLS)  # names are given; each pass loads what it needs
        passes = self._passes()
        if not self._plan.partial:
            return [
                "# one program computes BLOCK_ROWS whole rows, in pieces of BLOCK_SIZE columns",
                f"row_idx = {row_numbers('tl.program_id(0)')}",
                *head,
                *rows,
                *passes,
            ]
        return [
            "# one program computes every tl.num_programs(0)-th block of BLOCK_ROWS rows, in pieces of BLOCK_SIZE columns",
            *head,
            "for row_block in range(tl.program_id(0), tl.cdiv(n_rows, BLOCK_ROWS), tl.num_programs(0)):",
            *(f"    {line}" if line else "" for line in [f"row_idx = {row_numbers('row_block')}", *rows, *passes]),
        ]

    def _passes(self) -> list[str]:
        """A loop over the columns for each level of reductions, the rows' own numbers between them."""
        self._name_outputs()
        lines = self._name_constants()
        named = self._worth_a_name()
        named |= {value for value in self._plan.values if value.operation in NEUTRAL}
        self._cut_deep_trees(named)
        for value in self._plan.values:
            if value in named:
                self._names.name(value)
        self._shorten(named)
        order = [value for value in self._plan.values if value in named]
        level = levels([value for _, value in self._plan.outputs])
        last = max(level.values(), default=0)
        for step in range(1, last + 1):
            lines += self._row_values(order, level, step - 1)
            reductions = [v for v in order if v.operation in NEUTRAL and level[v] == step]
            if reductions:
                lines += self._reducing_pass(reductions, order)
        lines += self._row_values(order, level, last)
        return [*lines, *self._storing_pass(order), *self._store_lines(Extent.ROWS)]

    def _row_values(self, order: list[Value], level: dict[Value, int], step: int) -> list[str]:
        """Numbers of the row that are known after so many passes."""
        return [
            self._statement(value)
            for value in order
            if value.operation not in NEUTRAL and not value.extent & Extent.COLUMNS and level[value] == step
        ]

    def _reducing_pass(self, reductions: list[Value], order: list[Value]) -> list[str]:
        operands = [value.operands[0] for value in reductions]
        body = self._piece(operands, order)
        start, finish = [], []
        for value in reductions:
            name = self._names.name(value)
            start.append(f"{name}_tile = {_INITIAL[value.operation]}")
            text = self._expressions.masked(value)
            if value.operation == "row_sum":
                body.append(f"{name}_tile += {text}")
            else:
                function = "tl.maximum" if value.operation == "row_max" else "tl.minimum"
                body.append(f"{name}_tile = {function}({name}_tile, {text})")
            finish.append(f"{name} = {RowExpressions.reduced(value.operation, f'{name}_tile')}")
        return ["", *start, *_loop(body), *finish]

    def _storing_pass(self, order: list[Value]) -> list[str]:
        stored = [(t, v) for t, v in self._plan.outputs if self._plan.extent(t.name) != Extent.ROWS]
        if not stored:
            return []
        body = self._piece([value for _, value in stored], order)
        body += self._store_lines(Extent.CELLS)
        for tensor, value in stored:
            if tensor.name in self._plan.partial:
                pointer = f"{tensor.name}_ptr + tl.program_id(0) * n_cols + col_offsets"
                summand = self._expressions.masked_cell(value)
                body += [
                    f"{tensor.name} = tl.load({pointer}, mask=col_mask, other=0)",
                    f"{tensor.name} += tl.sum({summand}, axis=0, keep_dims=True)",
                    f"tl.store({pointer}, {tensor.name}, mask=col_mask)",
                ]
        return ["", *_loop(body)]

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
