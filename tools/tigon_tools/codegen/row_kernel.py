"""The text of a kernel over rows that a program has whole, in registers."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tigon_tools.codegen.kernel import OWN_NAMES, KernelText
from tigon_tools.codegen.plan import Scalar, Tensor
from tigon_tools.codegen.row_expression import FAST, NEUTRAL, RowExpressions
from tigon_tools.codegen.row_plan import RowKernelPlan
from tigon_tools.codegen.values import Extent, Kind, Value, reachable

ROW_NAMES = OWN_NAMES | frozenset(
    "row_mask col_mask row_block n_rows BLOCK_ROWS BLOCK_SIZE NUM_STAGES READ_TWICE start running_max shift".split()
)
"""Names that a kernel over rows uses for itself, the tile's mask aside."""

LAST_READ = "evict_first"
"""Cache policy of a second read. Without a difference the compiler makes one read of two, and keeps the row in
registers."""

_COLUMNS = ["col_offsets = tl.arange(0, BLOCK_SIZE)[None, :]", "col_mask = col_offsets < n_cols"]


class RowKernelText(KernelText):
    """Writes a `RowKernelPlan` down."""

    _plan: RowKernelPlan

    _expressions: RowExpressions
    own_names = ROW_NAMES
    other_mask = "cell_mask"

    def _new_expressions(self) -> RowExpressions:
        return RowExpressions(self._names.given, self._pointer_type, self._mask, self._is_cells)

    def _is_cells(self, name: str) -> bool:
        return self._plan.extent(name) == Extent.CELLS

    def functions(self) -> set[str]:
        return super().functions() - FAST

    def lines(self) -> list[str]:
        """The whole function, decorator included."""
        self._assign_loads()
        if not self._plan.partial:
            code = self._straight()
        else:
            code = self._one_sum() if may_read_twice(self._plan) else self._several_sums()
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
        return [*names, *(f"{name}: tl.constexpr" for name in self._settings())]

    def _settings(self) -> list[str]:
        return settings(self._plan, may_read_twice(self._plan))

    def _kernel_scalars(self) -> Sequence[Scalar]:
        return kernel_scalars(self._plan)

    def _tensors(self) -> list[Tensor]:
        return kernel_tensors(self._plan)

    def _assign_loads(self) -> None:
        for tensor in self._tensors():
            for value in self._loads_of(tensor):
                element = "" if value.element is None else f"_{value.element}"
                self._names.assign(value, f"{self._value_name(tensor)}{element}")

    def _loads_of(self, tensor: Tensor) -> list[Value]:
        """One, or the elements of a small vector."""
        return [v for v in self._plan.values if v.operation == "load" and v.name == tensor.name]

    def _name_outputs(self) -> None:
        """A sum over rows goes by its tensor's name, so its summand does not."""
        for tensor, value in self._plan.outputs:
            if tensor.name not in self._plan.partial and not value.is_leaf and self._names.given(value) is None:
                self._names.assign(value, self._value_name(tensor))

    def _straight(self) -> list[str]:
        """Parameters that only what comes after the reductions needs wait until then: they would hold registers."""
        scalars, statements = self._scalars(), self._named_statements()
        before, after = self._parts(statements)
        early = self._mentioned_loads(before, stores=False)
        late = [name for name in self._column_loads() if name not in early] if before else []
        early_columns = [name for name in self._column_loads() if name not in late]
        return [
            "# one program computes BLOCK_ROWS whole rows",
            f"row_idx = {row_numbers('tl.program_id(0)')}",
            *_COLUMNS,
            *self._row_masks(),
            "",
            *scalars,
            *self._load_lines(Extent.ONE),
            *self._load_lines(Extent.COLUMNS, only=early_columns),
            *self._load_lines(Extent.ROWS, Extent.CELLS),
            *self._constants,
            *self._section(before),
            *([""] if late else []),
            *self._load_lines(Extent.COLUMNS, only=late),
            *self._section(after, apart=not late),
            "",
            *self._store_lines(),
        ]

    def _several_sums(self) -> list[str]:
        scalars, statements = self._scalars(), self._named_statements()
        inner = [
            f"row_idx = {row_numbers('row_block')}",
            *self._row_masks(),
            *self._load_lines(Extent.ROWS, Extent.CELLS),
            *self._section(statements),
            "",
            *self._store_lines(),
            *self._partial_sums(),
        ]
        return [
            "# one program computes every tl.num_programs(0)-th block of BLOCK_ROWS rows",
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

    def _one_sum(self) -> list[str]:
        """A sum over rows beside a reduction of the row: pipelined, or read twice where the row takes too much room."""
        scalars, statements = self._scalars(), self._named_statements()
        before, after = self._parts(statements)
        first = self._mentioned_loads(before, stores=False)
        needed = self._again(statements)
        again = self._mentioned_loads(needed, stores=True)
        second = [
            "# from the cache: between the two reads the registers hold the sum alone",
            *self._load_lines(Extent.COLUMNS, Extent.CELLS, only=[n for n in again if n in first], policy=LAST_READ),
            *map(self._statement, (v for v in before if v in needed)),
        ]
        late = self._load_lines(Extent.COLUMNS, Extent.CELLS, only=[name for name in again if name not in first])
        inner = [
            f"row_idx = {row_numbers('row_block')}",
            *self._row_masks(),
            *self._load_lines(Extent.ROWS),
            *self._load_lines(Extent.COLUMNS, Extent.CELLS, only=first),
            *self._section(before),
            "",
            "if READ_TWICE:",
            *(f"    {line}" for line in second),
            "",
            *late,
            *self._section(after, apart=False),
            "",
            *self._store_lines(),
            *self._partial_sums(),
        ]
        return [
            "# one program computes every tl.num_programs(0)-th block of BLOCK_ROWS rows",
            *_COLUMNS,
            *scalars,
            *self._load_lines(Extent.ONE),
            *self._constants,
            *self._accumulators(),
            "",
            row_loop(),
            *(f"    {line}" if line else "" for line in inner),
            "",
            *self._partial_stores(),
        ]

    def _named_statements(self) -> list[Value]:
        """Values that get a line, in order. The lines of constants are kept in `_constants`."""
        self._name_outputs()
        constants = self._name_constants()
        self._constants = ["", *constants] if constants else []
        named = self._worth_a_name()
        self._cut_deep_trees(named)
        self._shorten(named)
        return [value for value in self._plan.values if value in named]

    def _parts(self, statements: list[Value]) -> tuple[list[Value], list[Value]]:
        """What the row's reductions need, themselves and the row's own numbers included, and the rest."""
        needed = set(reachable([value for value in self._plan.values if value.operation in NEUTRAL]))
        before = [v for v in statements if v in needed or not v.extent & Extent.COLUMNS]
        return before, [v for v in statements if v not in set(before)]

    def _again(self, statements: list[Value]) -> list[Value]:
        """What each element needs after the reductions, some of it for the second time."""
        needed: set[Value] = set()
        stack = [value for _, value in self._plan.outputs]
        while stack:
            value = stack.pop()
            if value not in needed and value.extent & Extent.COLUMNS:
                needed.add(value)
                stack.extend(value.operands)
        return [v for v in statements if v in needed]

    def _mentioned_loads(self, statements: list[Value], *, stores: bool) -> list[str]:
        """Tensors in the lines of these values, and in the lines that store."""
        stack = [operand for value in statements for operand in value.operands]
        if stores:
            stack += [value for _, value in self._plan.outputs]
        names, seen = [], set()
        while stack:
            value = stack.pop()
            if value in seen or self._is_statement(value):
                continue
            seen.add(value)
            if value.operation == "load":
                names.append(value.name)
            stack.extend(value.operands)
        return names

    def _is_statement(self, value: Value) -> bool:
        return not value.is_leaf and self._names.given(value) is not None

    def _column_loads(self) -> list[str]:
        return [v.name for v in self._plan.values if v.operation == "load" and v.extent == Extent.COLUMNS]

    def _section(self, statements: list[Value], apart: bool = True) -> list[str]:
        """Lines of values; what the forward had computed already comes first. apart: after an empty line."""
        recomputed = [value for value in statements if value in self._plan.recomputed]
        rest = [value for value in statements if value not in self._plan.recomputed]
        lines = [""] if statements and apart else []
        if recomputed:
            lines += ["# recomputed: cheaper than saving it for the backward", *map(self._statement, recomputed)]
        if recomputed and rest:
            lines.append("")
        return lines + [self._statement(value) for value in rest]

    def _row_masks(self) -> list[str]:
        return ["row_mask = row_idx < n_rows", f"{self._mask} = row_mask & col_mask"]

    def _load_lines(self, *extents: Extent, only: Sequence[str] | None = None, policy: str = "") -> list[str]:
        """policy: of the cache, for what is read twice."""
        lines = []
        for value in (value for tensor in self._tensors() for value in self._loads_of(tensor)):
            if value.extent not in extents or (only is not None and value.name not in only):
                continue
            cast = ".to(tl.float32)" if value.kind is Kind.FLOAT else ""
            hint = f', eviction_policy="{policy}"' if policy and value.extent == Extent.CELLS else ""
            place = self._place(value.name, value.extent) + (f" + {value.element}" if value.element else "")
            lines.append(f"{self._names.given(value)} = tl.load({place}{hint}){cast}")
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
        named |= self._row_numbers_of_elements()
        for value in self._plan.values:
            if value in named:
                self._names.name(value)
        return named

    def _row_numbers_of_elements(self) -> set[Value]:
        """Numbers of the row, made of reductions, that elements are computed with."""
        reduced: set[Value] = set()
        found: set[Value] = set()
        for value in self._plan.values:  # operands first
            if value.operation in NEUTRAL or any(operand in reduced for operand in value.operands):
                reduced.add(value)
            if value.extent & Extent.COLUMNS:
                found |= {v for v in value.operands if v in reduced and not v.extent & Extent.COLUMNS}
        return found

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
            pointer, mask = self._store_place(tensor.name, extent)
            text = self._names.given(value) or self._expressions.text(value)
            lines.append(f"tl.store({pointer}, {text}, mask={mask})")
        return lines

    def _store_place(self, name: str, extent: Extent) -> tuple[str, str]:
        place = self._place(name, extent).replace(", other=0", "")
        pointer, _, mask = place.partition(", mask=")
        return pointer, mask

    def _accumulators(self) -> list[str]:
        """Sums over the rows of a program, apart for each of BLOCK_ROWS until the end."""
        return [f"{name} = tl.zeros((BLOCK_ROWS, BLOCK_SIZE), dtype=tl.float32)" for name in self._plan.partial_names]

    def _partial_sums(self) -> list[str]:
        lines = []
        for tensor, value in self._plan.outputs:
            if tensor.name in self._plan.partial:
                columns = [Extent.COLUMNS] if tensor.name in self._plan.everything else []
                lines.append(f"{tensor.name} += {self._expressions.masked_cell(value, Extent.ROWS, *columns)}")
        return lines

    def _partial_stores(self) -> list[str]:
        place = "tl.program_id(0) * n_cols + col_offsets"
        return [
            f"tl.store({name}_ptr + {place}, tl.sum({name}, axis=0, keep_dims=True), mask=col_mask)"
            for name in self._plan.partial_names
            if name not in self._plan.everything
        ]


def may_read_twice(plan: RowKernelPlan) -> bool:
    """Whether a kernel over whole rows can take rows twice as long by reading them again after their reduction.

    With several sums over rows the registers are full without the row; without a reduction there is nothing between
    two reads.
    """
    return len(plan.partial) == 1 and plan.reduces_rows


def settings(plan: RowKernelPlan, twice: bool) -> list[str]:
    """Sizes that a kernel is compiled for."""
    stages = ["NUM_STAGES"] if plan.partial else []
    return ["BLOCK_ROWS", "BLOCK_SIZE", *stages, *(["READ_TWICE"] if twice else [])]


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


def row_loop() -> str:
    """Over the blocks of rows of one of several programs; the blocks ahead wait in shared memory."""
    blocks = "tl.program_id(0), tl.cdiv(n_rows, BLOCK_ROWS), tl.num_programs(0)"
    return f"for row_block in tl.range({blocks}, num_stages=NUM_STAGES):"
