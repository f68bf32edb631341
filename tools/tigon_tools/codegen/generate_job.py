"""Job `generate`: from an approved reference to its ops file."""

from __future__ import annotations

from tigon_tools.codegen import row_launcher
from tigon_tools.codegen.launcher import MAX_BLOCK_SIZE
from tigon_tools.codegen.local_names import local_names
from tigon_tools.codegen.ops_file import ops_source
from tigon_tools.codegen.plan import OpsPlan
from tigon_tools.codegen.planning import needs_rows, plan_file
from tigon_tools.codegen.row_launcher import TILE_SIZE
from tigon_tools.codegen.row_plan import RowKernelPlan
from tigon_tools.codegen.support import refuse_float64
from tigon_tools.codegen.unsupported import Unsupported
from tigon_tools.codegen.unwritten_file import unwritten_file
from tigon_tools.jobs import Progress
from tigon_tools.schema.errors import JobError
from tigon_tools.schema.generate import GenerateRequest, GenerateResult
from tigon_tools.schema.reference import Facts
from tigon_tools.trace.operation import TracedOperation
from tigon_tools.trace.reference import load
from tigon_tools.trace.sizes import mark_sizes
from tigon_tools.trace.trace_job import trace_reference

GRID_DIMENSIONS = "1D"
GRID_DESCRIPTION = f"one program a tile of at most {MAX_BLOCK_SIZE} columns of a row; contiguous tensors are one row"
BLOCK_SIZE_SOURCE = "calculate_settings(min(n_cols, MAX_BLOCK_SIZE))"
ROW_GRID_DESCRIPTION = (
    f"one program several short rows or one long one, of at least {TILE_SIZE} elements; rows beyond "
    f"{row_launcher.MAX_BLOCK_SIZE} are read in pieces"
)
SUMMED_GRID_DESCRIPTION = "one program a multiprocessor, which sums up its rows' part of the gradients over rows"
ROW_BLOCK_SIZE_SOURCE = "_row_settings(n_cols): next_power_of_2(n_cols), at most MAX_BLOCK_SIZE"


def run(request: GenerateRequest, progress: Progress | None = None) -> GenerateResult:
    """Trace the reference again, and write its file.

    Raises:
        JobError: "bad_reference" or "untraceable" as in job `trace`; "unsupported" naming the op.
    """
    operation, facts = trace_reference(request.reference)
    try:
        loaded = load(request.reference)
        refuse_float64(loaded.arguments)
        if facts.generates_not_because is not None:
            raise Unsupported(facts.generates_not_because)
        if needs_rows(operation) and not mark_sizes(loaded, operation):
            raise Unsupported("the reference takes no other sizes than its example's, so that sizes in it are unknown.")
        names = local_names(loaded, operation)
        planned = plan_file(operation, request.operation_name, request.function_class_name, names)
        text = ops_source(planned)
    except Unsupported as reason:
        if facts.tier == 3:
            return _left_to_write(operation, facts, request)
        closest = ", ".join(facts.closest_kernels) or "swiglu"
        raise JobError(
            "unsupported",
            f"no kernel can be generated for this reference: {reason}",
            f"Write it by hand after the closest Liger kernels ({closest}), or change the reference.",
        ) from None
    plan = planned.ops
    return GenerateResult(
        ops_source=text,
        exports=_exports(request),
        signature=", ".join(argument.public_declaration for argument in plan.arguments),
        call_arguments=", ".join(argument.public_name for argument in plan.arguments),
        grid_dimensions=GRID_DIMENSIONS,
        grid_description=_grid(plan),
        block_size_source=ROW_BLOCK_SIZE_SOURCE if isinstance(plan.forward, RowKernelPlan) else BLOCK_SIZE_SOURCE,
        facts=facts,
    )


def _left_to_write(operation: TracedOperation, facts: Facts, request: GenerateRequest) -> GenerateResult:
    """Everything but the kernels."""
    try:
        file = unwritten_file(operation, facts, request.operation_name, request.function_class_name)
    except Unsupported as reason:
        raise JobError("unsupported", str(reason), "Change the reference.") from None
    return GenerateResult(
        ops_source=file.source,
        exports=_exports(request),
        signature=", ".join(argument.public_declaration for argument in file.arguments),
        call_arguments=", ".join(argument.public_name for argument in file.arguments),
        grid_dimensions="written by hand",
        grid_description="left to whoever writes the kernels",
        block_size_source="left to whoever writes the kernels",
        facts=facts,
        complete=False,
        unwritten=file.unwritten,
    )


def _exports(request: GenerateRequest) -> tuple[str, ...]:
    name = request.operation_name
    return (request.function_class_name, f"{name}_backward", f"{name}_forward")


def _grid(plan: OpsPlan) -> str:
    kernels = [kernel for kernel in (plan.forward, plan.backward) if isinstance(kernel, RowKernelPlan)]
    if not kernels:
        return GRID_DESCRIPTION
    summed = any(kernel.partial for kernel in kernels)
    return f"{ROW_GRID_DESCRIPTION}; the backward: {SUMMED_GRID_DESCRIPTION}" if summed else ROW_GRID_DESCRIPTION
