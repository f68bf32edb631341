"""The text of the launchers of kernels over rows: views as rows, results allocated, sums finished."""

from __future__ import annotations

from tigon_tools.codegen.expression import Expressions
from tigon_tools.codegen.launcher import DTYPES, PROMOTED, PROMOTION, dtype_check, dtype_expression, dtype_of, indented
from tigon_tools.codegen.plan import Gradient, OpsPlan, Tensor
from tigon_tools.codegen.row_kernel import kernel_scalars, kernel_tensors
from tigon_tools.codegen.row_plan import RowKernelPlan
from tigon_tools.codegen.unsupported import Unsupported
from tigon_tools.codegen.values import Extent, Kind, Value

MAX_BLOCK_SIZE = 16384
"""Elements of the longest row that one program keeps whole: 16 registers a tensor for each of 1024 threads."""

TILE_SIZE = 2048
"""Elements that one program has at least; the point-wise kernels' block, which was measured."""

ROW_VIEW = '''
def _as_rows(*tensors):
    """
    Broadcasts the tensors and views each of them as (n_rows, n_cols), with columns one element apart.

    A layout that has no such view is copied.
    """
    tensors = torch.broadcast_tensors(*tensors)
    shape = tensors[0].shape
    rows = [tensor.reshape(shape[:-1].numel(), shape[-1]) for tensor in tensors]
    return shape, [row if row.stride(-1) == 1 else row.contiguous() for row in rows]
'''.strip().splitlines()

SETTINGS = '''
def _row_settings(n_cols):
    """A program has several short rows, or one long one; a row beyond MAX_BLOCK_SIZE is read in pieces."""
    BLOCK_SIZE = min(triton.next_power_of_2(max(n_cols, 1)), MAX_BLOCK_SIZE)
    BLOCK_ROWS = max(1, TILE_SIZE // BLOCK_SIZE)
    _, num_warps = calculate_settings(BLOCK_ROWS * BLOCK_SIZE)
    return BLOCK_ROWS, BLOCK_SIZE, num_warps
'''.strip().splitlines()

PROGRAMS = '''
def _max_programs(device):
    """As many as the device runs at once: more would only make more partial sums."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).multi_processor_count
    if device.type == "xpu":
        return torch.xpu.get_device_properties(device).gpu_eu_count
    return 1
'''.strip().splitlines()


def constants() -> list[str]:
    """Sizes that the launchers choose by."""
    return [
        "# Elements of the longest row that a program keeps in registers, and those a program has at least.",
        f"MAX_BLOCK_SIZE = {MAX_BLOCK_SIZE}",
        f"TILE_SIZE = {TILE_SIZE}",
    ]


def shared_functions(plan: OpsPlan) -> list[list[str]]:
    """What both launchers call."""
    kernels = [kernel for kernel in (plan.forward, plan.backward) if isinstance(kernel, RowKernelPlan)]
    functions = [ROW_VIEW, DTYPES, SETTINGS]
    if any(kernel.partial for kernel in kernels):
        functions.append(PROGRAMS)
    if any(PROMOTED in line for line in (*forward_lines(plan), *backward_lines(plan))):
        functions.append(PROMOTION)
    return functions


def forward_lines(plan: OpsPlan) -> list[str]:
    """`<op>_forward`: the outputs, and what only the backward needs."""
    kernel = plan.forward
    assert isinstance(kernel, RowKernelPlan)
    arguments = ", ".join(argument.declaration for argument in plan.arguments)
    tensors = frozenset(argument.name for argument in plan.arguments if argument.scalar is None)
    launch = _Launch(kernel, tensors)
    results = [launch.result(tensor) for tensor in kernel.results]
    return [
        f"def {plan.operation_name}_forward({arguments}):",
        *indented([*dtype_check(plan), *launch.lines(), f"return {', '.join(results)}"]),
    ]


def backward_lines(plan: OpsPlan) -> list[str]:
    """`<op>_backward`: the gradient of each argument that has one."""
    kernel = plan.backward
    assert isinstance(kernel, RowKernelPlan)
    scalars = [scalar.name for scalar in kernel.scalars]
    arguments = ", ".join([*plan.used_upstream, *plan.saved, *scalars])
    launch = _Launch(kernel, frozenset({*plan.used_upstream, *plan.saved}))
    results = [_gradient(gradient, launch, plan) for gradient in plan.gradients if gradient is not None]
    return [
        f"def {plan.operation_name}_backward({arguments}):",
        *indented([*launch.lines(), f"return {', '.join(results)}"]),
    ]


def _gradient(gradient: Gradient, launch: _Launch, plan: OpsPlan) -> str:
    if gradient.source == "kernel":
        return launch.result(gradient.tensor)
    if gradient.source == "shared":
        return launch.result(Tensor(gradient.upstream, Kind.FLOAT, gradient.tensor.types))
    return f"{gradient.upstream}.view(shape)" if launch.is_cells(gradient.upstream) else gradient.upstream


class _Launch:
    """Everything between a launcher's signature and its return."""

    def __init__(self, kernel: RowKernelPlan, given: frozenset[str]) -> None:
        self._kernel = kernel
        self._given = given
        self._cells = [t.name for t in kernel.named(Extent.CELLS)]
        self._first = self._cells[0] if self._cells else ""

    def lines(self) -> list[str]:
        return [*self._dtypes(), *self._views(), *self._allocations(), *self._call(), *self._formulas()]

    def is_cells(self, name: str) -> bool:
        return name in self._cells

    def result(self, tensor: Tensor) -> str:
        """A result as the launcher returns it."""
        shape = self._kernel.shapes.get(tensor.name)
        if shape is None:
            return f"{tensor.name}.view(shape)"
        return f"{tensor.name}.view({shape})" if shape and not self._is_formula(tensor.name) else tensor.name

    def _is_formula(self, name: str) -> bool:
        return any(tensor.name == name for tensor, _ in self._kernel.formulas)

    def _dtypes(self) -> list[str]:
        """Promotion looks at the shapes as well, so it comes before the rows."""
        lines = []
        for tensor, _ in self._kernel.outputs:
            dtype = self._dtype(tensor)
            if "(" in dtype:
                lines.append(f"{tensor.name}_dtype = {dtype}")
        return lines

    def _dtype(self, tensor: Tensor) -> str:
        return dtype_of(tensor, self._kernel, self._given)

    def _views(self) -> list[str]:
        kernel = self._kernel
        lines = []
        if self._cells:
            unpacked = f"({self._first},)" if len(self._cells) == 1 else f"({', '.join(self._cells)})"
            lines += [
                f"shape, {unpacked} = _as_rows({', '.join(self._cells)})",
                f"n_rows, n_cols = {self._first}.shape",
            ]
        if kernel.rank is not None:
            lines += [
                f"if len(shape) != {kernel.rank}:  # what divides by the first dimension divides by rows here",
                f'    raise ValueError(f"{kernel.rank} dimensions are expected, not {{tuple(shape)}}")',
            ]
        for tensor in kernel.named(Extent.COLUMNS):
            lines += [
                f"if {tensor.name}.numel() != n_cols:",
                f'    raise ValueError(f"{tensor.name} has {{{tensor.name}.numel()}} elements, and a row {{n_cols}}")',
                f"{tensor.name} = {tensor.name}.contiguous()",
            ]
        lines += [f"{tensor.name} = {tensor.name}.reshape(-1).contiguous()" for tensor in kernel.named(Extent.ROWS)]
        return lines

    def _allocations(self) -> list[str]:
        if not self._kernel.outputs:
            return []
        lines = []
        if self._kernel.partial:
            lines += [
                "BLOCK_ROWS, BLOCK_SIZE, num_warps = _row_settings(n_cols)",
                f"n_programs = min(triton.cdiv(n_rows, BLOCK_ROWS), _max_programs({self._first}.device))",
            ]
        for tensor, _ in self._kernel.outputs:
            extent = self._kernel.extent(tensor.name)
            dtype = self._dtype(tensor)
            dtype = f"{tensor.name}_dtype" if "(" in dtype else dtype
            shape = {Extent.CELLS: "(n_rows, n_cols)", Extent.ROWS: "n_rows", Extent.COLUMNS: "(n_programs, n_cols)"}
            # A long row's sums are added to in memory.
            make = "zeros" if tensor.name in self._kernel.partial else "empty"
            lines.append(f"{tensor.name} = torch.{make}({shape[extent]}, dtype={dtype}, device={self._first}.device)")
        return lines

    def _call(self) -> list[str]:
        kernel = self._kernel
        if not kernel.outputs:
            return []
        grid = "(n_programs,)" if kernel.partial else "(triton.cdiv(n_rows, BLOCK_ROWS),)"
        settings = [] if kernel.partial else ["    BLOCK_ROWS, BLOCK_SIZE, num_warps = _row_settings(n_cols)"]
        return [
            "if n_rows > 0:",
            *settings,
            f"    kernel = {kernel.name} if n_cols <= BLOCK_SIZE else {long_rows_name(kernel.name)}",
            f"    with device_context({self._first}.device):",
            f"        kernel[{grid}](",
            *(f"            {argument}," for argument in self._arguments()),
            "        )",
        ]

    def _arguments(self) -> list[str]:
        arguments = []
        for tensor in kernel_tensors(self._kernel):
            arguments.append(tensor.name)
            if self._kernel.extent(tensor.name) == Extent.CELLS:
                arguments.append(f"{tensor.name}.stride(0)")
        arguments += [f"{scalar.annotation}({scalar.name})" for scalar in kernel_scalars(self._kernel)]
        return [
            *arguments, "n_rows", "n_cols", "BLOCK_ROWS=BLOCK_ROWS", "BLOCK_SIZE=BLOCK_SIZE", "num_warps=num_warps",
        ]  # fmt: skip

    def _formulas(self) -> list[str]:
        """Results that are sums over rows, or made of them."""
        lines = []
        for tensor, value in self._kernel.formulas:
            text = HostExpressions(self._kernel, self._given).text(value)
            dtype = self._dtype(tensor)
            shape = self._kernel.shapes.get(tensor.name)
            whole = text if text.endswith(")") and text.count(" ") == 0 else f"({text})"
            cast = "" if dtype == "torch.float32" else f".to({dtype})"
            view = f".reshape({shape})" if shape and shape != "()" else ""
            lines.append(f"{tensor.name} = {whole if cast or view else text}{cast}{view}")
        return lines


def long_rows_name(name: str) -> str:
    """Of the kernel for rows that do not fit a block."""
    return name.replace("_kernel", "_long_rows_kernel")


class HostExpressions(Expressions):
    """A value as PyTorch computes it in the launcher: what is left to do with the sums over rows."""

    def __init__(self, kernel: RowKernelPlan, given: frozenset[str]) -> None:
        super().__init__(self._known, lambda value: dtype_expression(value.types))
        self._kernel = kernel
        self._given = given

    def _known(self, value: Value) -> str | None:
        name = self._kernel.sums.get(value)
        if name is None:
            return None
        return f"{name}.sum(dim=0)" if name in self._kernel.partial else f"{name}.sum()"

    def text(self, value: Value) -> str:
        return self._known(value) or super().text(value)

    def _define(self, value: Value) -> tuple[str, int]:
        atom = 8
        if value.operation == "load":
            return f"{value.name}.float()", atom
        if value.operation == "round":
            return f"{self._operand(value.operands[0], atom)}.to({self._pointer_type(value)}).float()", atom
        if value.operation == "convert":
            return self._operand(value.operands[0], atom), atom
        return super()._define(value)

    def _call(self, value: Value) -> str:
        name = {"where": "torch.where"}.get(value.operation, f"torch.{value.operation.removeprefix('tl.')}")
        if value.operation.removeprefix("tl.") not in _TORCH:
            raise Unsupported(f"{value.operation} of a sum over rows.")
        return f"{name}({', '.join(self._operand(operand, 0) for operand in value.operands)})"


_TORCH = frozenset("where exp log sqrt rsqrt abs tanh sigmoid maximum minimum".split())
"""Functions that PyTorch has under the name they have here."""
