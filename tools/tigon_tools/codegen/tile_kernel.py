"""The text of a kernel over tiles, some columns of some rows: nothing is reduced along a row, so none has to be whole."""

from __future__ import annotations

from tigon_tools.codegen.row_kernel import RowKernelText, row_loop, row_numbers, settings
from tigon_tools.codegen.values import Extent

_COLUMNS = [
    "col_offsets = tl.program_id(1) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)[None, :]",
    "col_mask = col_offsets < n_cols",
]


class TileKernelText(RowKernelText):
    """Writes a `RowKernelPlan` that reduces no row down."""

    def lines(self) -> list[str]:
        self._assign_loads()
        return self._function(self._plan.name, self._summing() if self._plan.partial else self._one_tile())

    def _settings(self) -> list[str]:
        return settings(self._plan, twice=False)

    def _one_tile(self) -> list[str]:
        scalars, statements = self._scalars(), self._named_statements()
        return [
            "# one program computes BLOCK_ROWS rows of BLOCK_SIZE columns",
            f"row_idx = {row_numbers('tl.program_id(0)')}",
            *_COLUMNS,
            *self._row_masks(),
            "",
            *scalars,
            *self._load_lines(Extent.ONE, Extent.COLUMNS, Extent.ROWS, Extent.CELLS),
            *self._constants,
            *self._section(statements),
            "",
            *self._store_lines(),
        ]

    def _summing(self) -> list[str]:
        """Down the rows."""
        scalars, statements = self._scalars(), self._named_statements()
        stores = self._store_lines()
        inner = [
            f"row_idx = {row_numbers('row_block')}",
            *self._row_masks(),
            *self._load_lines(Extent.ROWS, Extent.CELLS),
            *self._section(statements),
            *(["", *stores] if stores else [""] if statements else []),
            *self._partial_sums(),
        ]
        return [
            "# one program computes every tl.num_programs(0)-th block of BLOCK_ROWS rows, BLOCK_SIZE columns of it",
            *_COLUMNS,
            *scalars,
            *self._load_lines(Extent.ONE, Extent.COLUMNS),
            *self._constants,
            *self._accumulators(),
            "",
            row_loop(),
            *(f"    {line}" if line else "" for line in inner),
            "",
            *self._partial_stores(),
        ]

    def _partial_stores(self) -> list[str]:
        place = "tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)"
        everything = self._plan.everything
        lines = [
            f"tl.store({name}_ptr + {place}, tl.sum({name}))" for name in self._plan.partial_names if name in everything
        ]
        return [*super()._partial_stores(), *lines]

    def _store_place(self, name: str, extent: Extent) -> tuple[str, str]:
        """A number of the row is the first of its programs' to store."""
        pointer, mask = super()._store_place(name, extent)
        return pointer, f"{mask} & (tl.program_id(1) == 0)" if extent == Extent.ROWS else mask
