"""The text of a kernel over rows that fit a block: read once, kept in registers."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tigon_tools.codegen.kernel import OWN_NAMES, KernelText
from tigon_tools.codegen.plan import Scalar, Tensor
from tigon_tools.codegen.row_expression import NEUTRAL, RowExpressions
from tigon_tools.codegen.row_plan import RowKernelPlan
from tigon_tools.codegen.values import Extent, Kind, Value

ROW_NAMES = OWN_NAMES | {"row_mask", "col_mask", "row_block", "n_rows", "BLOCK_ROWS", "BLOCK_SIZE", "start"}
"""Names that a kernel over rows uses for itself, the tile's mask aside."""


class RowKernelText(KernelText):
    """Writes a `RowKernelPlan` down."""

    _plan: RowKernelPlan

    _expressions: RowExpressions
    own_names = ROW_NAMES
    other_mask = "cell_mask"

    def _new_expressions(self) -> RowExpressions:
        return RowExpressions(self._names.given, self._pointer_type, self._mask)

    def lines(self) -> list[str]:
        """The whole function, decorator included."""
        code = self._looped() if self._plan.partial else self._straight()
        return self._function(self._plan.name, code)

    def _summed(self) -> Collection[str]:
        return self._plan.partial

    def _parameters(self) -> list[str]:
        parameters = []
        for tensor in self._tensors():
            parameters.append(f"{tensor.name}_ptr")
            if self._plan.extent(tensor.name) == Extent.CELLS:
                parameters.append(f"{tensor.name}_row_stride")
        names = [*parameters, *(s.name for s in self._kernel_scalars()), "n_rows", "n_cols"]
        return [*names, "BLOCK_ROWS: tl.constexpr", "BLOCK_SIZE: tl.constexpr"]

    def _kernel_scalars(self) -> Sequence[Scalar]:
        return kernel_scalars(self._plan)

    def _tensors(self) -> list[Tensor]:
        return kernel_tensors(self._plan)

    def _name_outputs(self) -> None:
        """A sum over rows goes by its tensor's name, so its summand does not."""
        for tensor, value in self._plan.outputs:
            if tensor.name not in self._plan.partial and not value.is_leaf and self._names.given(value) is None:
                self._names.assign(value, self._value_name(tensor))

    def _straight(self) -> list[str]:
        return [
            "# one program computes BLOCK_ROWS whole rows",
            f"row_idx = {row_numbers('tl.program_id(0)')}",
            *self._columns("tl.arange(0, BLOCK_SIZE)[None, :]"),
            *self._row_masks(),
            "",
            *self._scalars(),
            *self._load_lines(Extent.ONE, Extent.COLUMNS, Extent.ROWS, Extent.CELLS),
            *self._computation(),
            "",
            *self._store_lines(),
        ]

    def _looped(self) -> list[str]:
        """Each program sums up what it finds in its rows, in registers."""
        inner = [
            f"row_idx = {row_numbers('row_block')}",
            *self._row_masks(),
            "",
            *self._load_lines(Extent.ROWS, Extent.CELLS),
            *self._computation(),
            "",
            *self._store_lines(),
            *self._partial_sums(),
        ]
        partial = sorted(self._plan.partial, key=[t.name for t, _ in self._plan.outputs].index)
        store = "tl.program_id(0) * n_cols + col_offsets"
        return [
            "# one program computes every tl.num_programs(0)-th block of BLOCK_ROWS rows",
            *self._columns("tl.arange(0, BLOCK_SIZE)[None, :]"),
            *self._scalars(),
            *self._load_lines(Extent.ONE, Extent.COLUMNS),
            *(f"{name} = tl.zeros((1, BLOCK_SIZE), dtype=tl.float32)" for name in partial),
            "",
            "for row_block in range(tl.program_id(0), tl.cdiv(n_rows, BLOCK_ROWS), tl.num_programs(0)):",
            *(f"    {line}" if line else "" for line in inner),
            "",
            *(f"tl.store({name}_ptr + {store}, {name}, mask=col_mask)" for name in partial),
        ]

    @staticmethod
    def _columns(offsets: str) -> list[str]:
        return [f"col_offsets = {offsets}", "col_mask = col_offsets < n_cols"]

    def _row_masks(self) -> list[str]:
        return ["row_mask = row_idx < n_rows", f"{self._mask} = row_mask & col_mask"]

    def _load_lines(self, *extents: Extent, only: Sequence[str] | None = None) -> list[str]:
        lines = []
        values = {value.name: value for value in self._plan.values if value.operation == "load"}
        for tensor in self._tensors():
            value = values.get(tensor.name)
            if value is None or value.extent not in extents or (only is not None and tensor.name not in only):
                continue
            name = self._value_name(tensor)
            self._names.assign(value, name)
            cast = ".to(tl.float32)" if value.kind is Kind.FLOAT else ""
            lines.append(f"{name} = tl.load({self._place(tensor.name, value.extent)}){cast}")
        return lines

    def _place(self, name: str, extent: Extent) -> str:
        """Pointer and mask of a load."""
        return {
            Extent.ONE: f"{name}_ptr",
            Extent.ROWS: f"{name}_ptr + row_idx, mask=row_mask, other=0",
            Extent.COLUMNS: f"{name}_ptr + col_offsets, mask=col_mask, other=0",
            Extent.CELLS: f"{name}_ptr + row_idx * {name}_row_stride + col_offsets, mask={self._mask}, other=0",
        }[extent]

    def _worth_a_name(self) -> set[Value]:
        """Reductions too: each is a step that a reader looks for."""
        named = super()._worth_a_name()
        for value in self._plan.values:
            if value.operation in NEUTRAL and not self._is_mean(value):
                named.add(value)
        for value in self._plan.values:
            if value in named:
                self._names.name(value)
        return named

    def _is_mean(self, value: Value) -> bool:
        """A sum that is used once, to be divided by the size of the row."""
        users = [v for v in self._plan.values if value in v.operands]
        return len(users) == 1 and users[0].operation == "divide" and users[0].operands[1].operation == "size"

    def _store_lines(self, *extents: Extent) -> list[str]:
        lines = []
        for tensor, value in self._plan.outputs:
            extent = self._plan.extent(tensor.name)
            if tensor.name in self._plan.partial or (extents and extent not in extents):
                continue
            place = self._place(tensor.name, extent).replace(", other=0", "")
            pointer, _, mask = place.partition(", ")
            text = self._names.given(value) or self._expressions.text(value)
            lines.append(f"tl.store({pointer}, {text}, {mask})")
        return lines

    def _partial_sums(self) -> list[str]:
        lines = []
        for tensor, value in self._plan.outputs:
            if tensor.name in self._plan.partial:
                summand = self._expressions.masked_cell(value)
                lines.append(f"{tensor.name} += tl.sum({summand}, axis=0, keep_dims=True)")
        return lines


def kernel_tensors(plan: RowKernelPlan) -> list[Tensor]:
    """What the kernel stores, then what it loads."""
    loaded = {value.name for value in plan.values if value.operation == "load"}
    return [*(t for t, _ in plan.outputs), *(t for t in plan.inputs if t.name in loaded)]


def kernel_scalars(plan: RowKernelPlan) -> list[Scalar]:
    """Those that the kernel itself needs."""
    used = {value.name for value in plan.values if value.operation == "scalar"}
    return [scalar for scalar in plan.scalars if scalar.name in used]


def row_numbers(block: str) -> str:
    """Row numbers as int64: row times stride passes 2**31."""
    return f"({block} * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)).to(tl.int64)[:, None]"
