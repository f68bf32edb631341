"""The text of one launch of kernels over rows: everything between a launcher's signature and its return."""

from __future__ import annotations

from collections.abc import Mapping

from tigon_tools.codegen.host_expression import HostExpressions
from tigon_tools.codegen.launcher import dtype_of, indented
from tigon_tools.codegen.plan import Tensor
from tigon_tools.codegen.row_forms import Form, RowKernel, kernels_of, statistics_of
from tigon_tools.codegen.row_kernel import kernel_scalars, kernel_tensors, may_read_twice, settings
from tigon_tools.codegen.row_plan import RowKernelPlan
from tigon_tools.codegen.values import Extent, Value

ELEMENTS_WITH_SUMS = 16
"""Elements of a tensor that a thread has where sums over rows take registers as well."""


class RowLaunch:
    """Writes down how a plan's kernels are launched. given: tensors that the launcher has as arguments."""

    def __init__(self, plan: RowKernelPlan, given: frozenset[str]) -> None:
        self._plan = plan
        self._given = given
        self._cells = [t.name for t in plan.named(Extent.CELLS)]
        self._first = self._cells[0] if self._cells else ""
        self._kernels = kernels_of(plan) if plan.outputs else None

    def lines(self) -> list[str]:
        return [*self._dtypes(), *self._views(), *self._allocations(), *self._launches(), *self._formulas()]

    def is_cells(self, name: str) -> bool:
        return name in self._cells

    def result(self, tensor: Tensor) -> str:
        """A result as the launcher returns it."""
        shape = self._plan.shapes.get(tensor.name)
        if shape is None:
            return f"{tensor.name}.view(shape)"
        return f"{tensor.name}.view({shape})" if shape and not self._is_formula(tensor.name) else tensor.name

    def _is_formula(self, name: str) -> bool:
        return any(tensor.name == name for tensor, _ in self._plan.formulas)

    def _dtypes(self) -> list[str]:
        """Promotion looks at the shapes as well, so it comes before the rows."""
        lines = []
        for tensor, _ in self._plan.outputs:
            dtype = self._dtype(tensor)
            if "(" in dtype:
                lines.append(f"{tensor.name}_dtype = {dtype}")
        return lines

    def _dtype(self, tensor: Tensor) -> str:
        return dtype_of(tensor, self._plan, self._given)

    def _views(self) -> list[str]:
        plan = self._plan
        lines = []
        if self._cells:
            unpacked = f"({self._first},)" if len(self._cells) == 1 else f"({', '.join(self._cells)})"
            lines += [
                f"shape, {unpacked} = _as_rows({', '.join(self._cells)})",
                f"n_rows, n_cols = {self._first}.shape",
            ]
        if plan.rank is not None:
            lines += [
                f"if len(shape) != {plan.rank}:  # what divides by the first dimension divides by rows here",
                f'    raise ValueError(f"{plan.rank} dimensions are expected, not {{tuple(shape)}}")',
            ]
        for tensor in plan.named(Extent.COLUMNS):
            lines += [
                f"if {tensor.name}.numel() != n_cols:",
                f'    raise ValueError(f"{tensor.name} has {{{tensor.name}.numel()}} elements, and a row {{n_cols}}")',
                f"{tensor.name} = {tensor.name}.contiguous()",
            ]
        for name, count in plan.elements.items():
            lines += [
                f"if {name}.numel() != {count}:",
                f'    raise ValueError(f"{name} has {{{name}.numel()}} elements, not {count}")',
                f"{name} = {name}.contiguous()",
            ]
        lines += [f"{tensor.name} = {tensor.name}.reshape(-1).contiguous()" for tensor in plan.named(Extent.ROWS)]
        return lines

    def _allocations(self) -> list[str]:
        """Of what has a size that the launch does not depend on."""
        lines = []
        for tensor, _ in self._plan.outputs:
            if tensor.name in self._plan.partial:
                continue
            dtype = self._dtype(tensor)
            dtype = f"{tensor.name}_dtype" if "(" in dtype else dtype
            cells = self._plan.extent(tensor.name) == Extent.CELLS
            lines.append(self._empty(tensor.name, "(n_rows, n_cols)" if cells else "n_rows", dtype))
        return lines

    def _empty(self, target: str, shape: str, dtype: str = "torch.float32") -> str:
        return f"{target} = torch.empty({shape}, dtype={dtype}, device={self._first}.device)"

    def _launches(self) -> list[str]:
        if self._kernels is None:
            return []
        short = self._kernels.short
        if short.form is Form.TILES:
            return self._tiles(short)
        if not self._plan.partial:
            return self._one_of_two()
        # The sums share the registers: a power of two of them, since a block is one.
        share = 1 << (len(self._plan.partial) - 1).bit_length()
        longest = "MAX_BLOCK_SIZE" if share == 1 else f"MAX_BLOCK_SIZE // {share}"
        statistics = [self._empty(tensor.name, "n_rows") for tensor in statistics_of(self._kernels)]
        rows, sums = self._kernels.long
        return [
            f"if n_cols <= {longest}:",
            *indented(self._whole_with_sums(short)),
            "else:  # no registers for the sums beside such a row: they are made apart",
            *indented([*statistics, *self._pieces(rows), *self._tiles(sums)]),
        ]

    def _one_of_two(self) -> list[str]:
        assert self._kernels is not None
        short, (long,) = self._kernels.short, self._kernels.long
        return [
            "BLOCK_ROWS, BLOCK_SIZE, num_warps = _row_settings(n_cols)",
            "if n_rows > 0:",
            f"    kernel = {short.plan.name} if n_cols <= BLOCK_SIZE else {long.plan.name}",
            *indented(self._call("kernel", "(triton.cdiv(n_rows, BLOCK_ROWS),)", short.plan)),
        ]

    def _whole_with_sums(self, kernel: RowKernel) -> list[str]:
        plan = kernel.plan
        twice = (
            ["READ_TWICE = BLOCK_SIZE > MAX_BLOCK_SIZE // 2  # registers for the sum, or for the row"]
            if may_read_twice(plan)
            else []
        )
        return [
            f"BLOCK_ROWS, BLOCK_SIZE, num_warps = _row_settings(n_cols, {ELEMENTS_WITH_SUMS})",
            *twice,
            f"n_programs = min(triton.cdiv(n_rows, BLOCK_ROWS), _max_programs({self._first}.device, num_warps))",
            *self._partial_sums(plan),
            "if n_rows > 0:",
            *indented(self._call(plan.name, "(n_programs,)", plan, twice=bool(twice))),
        ]

    def _pieces(self, kernel: RowKernel) -> list[str]:
        return [
            "BLOCK_ROWS, BLOCK_SIZE, num_warps = _row_settings(n_cols)",
            "if n_rows > 0:",
            *indented(self._call(kernel.plan.name, "(triton.cdiv(n_rows, BLOCK_ROWS),)", kernel.plan)),
        ]

    def _tiles(self, kernel: RowKernel) -> list[str]:
        plan = kernel.plan
        lines = [
            "BLOCK_ROWS, BLOCK_SIZE, num_warps = _tile_settings(n_cols)",
            "n_col_blocks = triton.cdiv(n_cols, BLOCK_SIZE)",
        ]
        rows = "triton.cdiv(n_rows, BLOCK_ROWS)"
        if plan.partial:
            programs = f"_max_programs({self._first}.device, num_warps) // max(n_col_blocks, 1)"
            lines += [f"n_programs = min({rows}, max({programs}, 1))", *self._partial_sums(plan)]
            rows = "n_programs"
        return [
            *lines,
            f"if {self._first}.numel() > 0:",
            *indented(self._call(plan.name, f"({rows}, n_col_blocks)", plan)),
        ]

    def _partial_sums(self, plan: RowKernelPlan) -> list[str]:
        """One tensor each: PyTorch adds up two dimensions several times faster than the middle one of three."""
        shapes = {
            name: "n_programs, n_col_blocks" if name in plan.everything else "n_programs, n_cols"
            for name in plan.partial_names
        }
        return [self._empty(name, f"({shape})") for name, shape in shapes.items()]

    def _call(self, function: str, grid: str, plan: RowKernelPlan, twice: bool = False) -> list[str]:
        lines = []
        if plan.partial:
            names = [t.name for t in plan.named(Extent.CELLS)]
            sizes = " + ".join(f"{name}.element_size()" for name in names)
            sizes = f"({sizes})" if len(names) > 1 else sizes
            stages = f"_num_stages(BLOCK_ROWS * BLOCK_SIZE * {sizes}, {names[0]}.device)"
            lines.append(f"NUM_STAGES = {'1 if READ_TWICE else ' if twice else ''}{stages}")
        return [
            *lines,
            f"with device_context({self._first}.device):",
            f"    {function}[{grid}](",
            *(f"        {argument}," for argument in self._arguments(plan, twice)),
            "    )",
        ]

    @staticmethod
    def _arguments(plan: RowKernelPlan, twice: bool) -> list[str]:
        arguments = []
        for tensor in kernel_tensors(plan):
            arguments.append(tensor.name)
            if plan.extent(tensor.name) == Extent.CELLS:
                arguments.append(f"{tensor.name}.stride(0)")
        arguments += [f"{scalar.annotation}({scalar.name})" for scalar in kernel_scalars(plan)]
        chosen = [f"{name}={name}" for name in settings(plan, twice)]
        return [*arguments, "n_rows", "n_cols", *chosen, "num_warps=num_warps"]

    def _formulas(self) -> list[str]:
        """Results that are sums over rows, or made of them. A sum that is a result itself comes first, and is used."""
        lines: list[str] = []
        made: dict[Value, str] = {}
        for tensor, value in sorted(self._plan.formulas, key=lambda formula: not self._is_plain_sum(*formula)):
            if self._is_plain_sum(tensor, value):  # even if it was made before: results share no memory
                lines.append(self._formula(tensor, value, {}))
                made[value] = tensor.name
            else:
                lines.append(self._formula(tensor, value, made))
        return lines

    def _is_plain_sum(self, tensor: Tensor, value: Value) -> bool:
        """Whether the result is a sum over rows just as the launcher makes it."""
        return value in self._plan.sums and not self._finish(tensor)

    def _formula(self, tensor: Tensor, value: Value, made: Mapping[Value, str]) -> str:
        text = HostExpressions(self._plan, made).text(value)
        finish = self._finish(tensor)
        whole = text if text.endswith(")") and text.count(" ") == 0 else f"({text})"
        whole = text if text.isidentifier() else whole
        return f"{tensor.name} = {whole if finish else text}{finish}"

    def _finish(self, tensor: Tensor) -> str:
        """Of a formula's result, which is float32 and has the shape that PyTorch gives it."""
        dtype, shape = self._dtype(tensor), self._plan.shapes.get(tensor.name)
        cast = "" if dtype == "torch.float32" else f".to({dtype})"
        view = f".reshape({shape})" if shape and shape != "()" else ""
        return f"{cast}{view}"
