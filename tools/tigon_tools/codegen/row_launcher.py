"""The text of the launchers of kernels over rows: views as rows, results allocated, sums finished."""

from __future__ import annotations

from tigon_tools.codegen.launcher import DTYPES, PROMOTED, PROMOTION, dtype_check, indented
from tigon_tools.codegen.plan import Gradient, OpsPlan, Tensor
from tigon_tools.codegen.row_launch import RowLaunch
from tigon_tools.codegen.row_plan import RowKernelPlan
from tigon_tools.codegen.values import Kind

MAX_BLOCK_SIZE = 16384
"""Elements of the longest row that one program keeps whole; a sum over rows has to fit beside it."""

PIECE_SIZE = 8192
"""Elements of a piece of a longer row."""

TILE_SIZE = 2048
"""Elements that one program has at least; the point-wise kernels' block."""

TILE_COLUMNS = 1024
"""Of a program that needs no whole row; the rest of its tile is rows."""

MAX_WARPS = 16
"""Of a program, and of all programs that a multiprocessor runs at once where each makes partial sums."""

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
def _row_settings(n_cols, elements_per_thread=32):
    """A program has several short rows, or one long one; a row beyond MAX_BLOCK_SIZE is read in pieces."""
    BLOCK_SIZE = triton.next_power_of_2(max(n_cols, 1))
    if BLOCK_SIZE > MAX_BLOCK_SIZE:
        BLOCK_SIZE = PIECE_SIZE
    BLOCK_ROWS = max(1, TILE_SIZE // BLOCK_SIZE)
    num_warps = min(BLOCK_ROWS * BLOCK_SIZE // (32 * elements_per_thread), MAX_WARPS)
    return BLOCK_ROWS, BLOCK_SIZE, num_warps
'''.strip().splitlines()

TILES = '''
def _tile_settings(n_cols):
    """Where no program needs a whole row."""
    BLOCK_SIZE = min(triton.next_power_of_2(max(n_cols, 1)), TILE_COLUMNS)
    return TILE_SIZE // BLOCK_SIZE, BLOCK_SIZE, 4
'''.strip().splitlines()

PROGRAMS = '''
def _max_programs(device, num_warps):
    """As many as the device runs well at once: more would only make more partial sums."""
    if device.type == "cuda":
        processors = torch.cuda.get_device_properties(device).multi_processor_count
    elif device.type == "xpu":
        processors = torch.xpu.get_device_properties(device).gpu_eu_count
    else:
        return 2
    return processors * (MAX_WARPS // num_warps)
'''.strip().splitlines()

STAGES = '''
def _num_stages(tile_bytes, device):
    """Two tiles ahead of the one that is computed wait in shared memory, where that has room for them."""
    if device.type != "cuda":
        return 1
    properties = torch.cuda.get_device_properties(device)
    room = getattr(properties, "shared_memory_per_block_optin", 48 * 1024) - 16 * 1024  # reductions use some
    return 3 if 2 * tile_bytes <= room else 1
'''.strip().splitlines()


def constants(plan: OpsPlan) -> list[str]:
    """Sizes that the launchers choose by, as far as they do."""
    text = "\n".join(line for function in shared_functions(plan) for line in function)
    known = {
        "MAX_BLOCK_SIZE": (MAX_BLOCK_SIZE, "elements of the longest row that a program keeps in registers"),
        "PIECE_SIZE": (PIECE_SIZE, "elements of a piece of a longer row"),
        "TILE_SIZE": (TILE_SIZE, "elements that a program has at least"),
        "TILE_COLUMNS": (TILE_COLUMNS, "columns of a program that needs no whole row"),
        "MAX_WARPS": (
            MAX_WARPS,
            "of a program; where programs make partial sums, of those a multiprocessor runs at once",
        ),
    }
    return [f"{name} = {size}  # {meaning}" for name, (size, meaning) in known.items() if name in text]


def shared_functions(plan: OpsPlan) -> list[list[str]]:
    """What both launchers call."""
    lines = "\n".join([*forward_lines(plan), *backward_lines(plan)])
    called = {
        "_row_settings(": SETTINGS,
        "_tile_settings(": TILES,
        "_max_programs(": PROGRAMS,
        "_num_stages(": STAGES,
        f"{PROMOTED}(": PROMOTION,
    }
    return [ROW_VIEW, DTYPES, *(function for call, function in called.items() if call in lines)]


def forward_lines(plan: OpsPlan) -> list[str]:
    """`<op>_forward`: the outputs, and what only the backward needs."""
    kernel = plan.forward
    assert isinstance(kernel, RowKernelPlan)
    arguments = ", ".join(argument.declaration for argument in plan.arguments)
    tensors = frozenset(argument.name for argument in plan.arguments if argument.scalar is None)
    launch = RowLaunch(kernel, tensors)
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
    launch = RowLaunch(kernel, frozenset({*plan.used_upstream, *plan.saved}))
    results = [_gradient(gradient, launch, plan) for gradient in plan.gradients if gradient is not None]
    return [
        f"def {plan.operation_name}_backward({arguments}):",
        *indented([*launch.lines(), f"return {', '.join(results)}"]),
    ]


def _gradient(gradient: Gradient, launch: RowLaunch, plan: OpsPlan) -> str:
    if gradient.source == "kernel":
        return launch.result(gradient.tensor)
    if gradient.source == "shared":
        return launch.result(Tensor(gradient.upstream, Kind.FLOAT, gradient.tensor.types))
    return f"{gradient.upstream}.view(shape)" if launch.is_cells(gradient.upstream) else gradient.upstream
