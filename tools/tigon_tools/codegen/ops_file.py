"""The text of the whole ops file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

from tigon_tools.codegen import row_launcher
from tigon_tools.codegen.autograd_function import function_lines
from tigon_tools.codegen.kernel import KernelText
from tigon_tools.codegen.launcher import MAX_BLOCK_SIZE, backward_lines, forward_lines, shared_functions
from tigon_tools.codegen.long_row_kernel import LongRowKernelText
from tigon_tools.codegen.planning import Planned
from tigon_tools.codegen.row_forms import Form, RowKernel, kernels_of
from tigon_tools.codegen.row_kernel import RowKernelText
from tigon_tools.codegen.row_plan import RowKernelPlan
from tigon_tools.codegen.tile_kernel import TileKernelText
from tigon_tools.codegen.values import Value

T = TypeVar("T")


def ops_source(planned: Planned) -> str:
    """Formatted as ruff would leave it, as far as lines are not too long."""
    plan = planned.ops
    if isinstance(plan.forward, RowKernelPlan):
        return _row_source(planned)
    kernels = [
        KernelText(kernel, planned.hints, planned.gradient_of)
        for kernel in (plan.forward, plan.backward)
        if kernel.outputs
    ]
    functions = sorted(set().union(*(kernel.functions() for kernel in kernels)), key=_as_isort_does)
    parts = [
        [*_imports(functions, "calculate_settings", "device_context"), "", *_block_size()],
        *(kernel.lines() for kernel in kernels),
        *shared_functions(plan),
        forward_lines(plan),
        backward_lines(plan),
        function_lines(plan),
    ]
    return "\n\n\n".join("\n".join(part) for part in parts) + "\n"


def _row_source(planned: Planned) -> str:
    plan = planned.ops
    kernels = [
        _row_text(kernel, planned)
        for direction in (plan.forward, plan.backward)
        if direction.outputs and isinstance(direction, RowKernelPlan)
        for kernel in kernels_of(direction).all
    ]
    functions = sorted(set().union(*(kernel.functions() for kernel in kernels)), key=_as_isort_does)
    parts = [
        [*_imports(functions, "device_context"), "", *row_launcher.constants(plan)],
        *(kernel.lines() for kernel in kernels),
        *row_launcher.shared_functions(plan),
        row_launcher.forward_lines(plan),
        row_launcher.backward_lines(plan),
        function_lines(plan),
    ]
    return "\n\n\n".join("\n".join(part) for part in parts) + "\n"


def _as_isort_does(name: str) -> list[tuple[int, str]]:
    """Numbers by size: log1p before log10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


def _row_text(kernel: RowKernel, planned: Planned) -> RowKernelText:
    """What a value stands for has its name and is the gradient of the same."""
    hints = {**planned.hints, **_moved(planned.hints, kernel)}
    gradient_of = {**planned.gradient_of, **_moved(planned.gradient_of, kernel)}
    texts = {Form.WHOLE: RowKernelText, Form.PIECES: LongRowKernelText, Form.TILES: TileKernelText}
    return texts[kernel.form](kernel.plan, hints, gradient_of)


def _moved(known: Mapping[Value, T], kernel: RowKernel) -> dict[Value, T]:
    """What is known of values, for those that stand for them."""
    return {new: known[old] for new, old in kernel.renamed.items() if old in known}


def _imports(functions: list[str], *ligers: str) -> list[str]:
    lines = [
        "import torch",
        "import triton",
        "import triton.language as tl",
        "",
        *(f"from liger_kernel.ops.utils import {name}" for name in ligers),
    ]
    if not functions:
        return lines
    path = "triton.language.extra"
    return [
        *lines,
        "",
        "try:",
        "    # typical import path with dispatch available",
        *(f"    from {path}.libdevice import {name}" for name in functions),
        "except ModuleNotFoundError:",
        "    # for working with NGC containers",
        *(f"    from {path}.cuda.libdevice import {name}" for name in functions),
    ]


def _block_size() -> list[str]:
    return [
        "# Elements per program; a longer row is computed by several programs.",
        f"MAX_BLOCK_SIZE = {MAX_BLOCK_SIZE}",
    ]
