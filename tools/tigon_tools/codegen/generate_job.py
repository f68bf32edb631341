"""Job `generate`: from an approved reference to its ops file."""

from __future__ import annotations

from tigon_tools.codegen.launcher import MAX_BLOCK_SIZE
from tigon_tools.codegen.local_names import local_names
from tigon_tools.codegen.ops_file import ops_source
from tigon_tools.codegen.planning import plan_file
from tigon_tools.codegen.unsupported import Unsupported
from tigon_tools.jobs import Progress
from tigon_tools.schema.errors import JobError
from tigon_tools.schema.generate import GenerateRequest, GenerateResult
from tigon_tools.trace.reference import load
from tigon_tools.trace.trace_job import trace_reference

GRID_DIMENSIONS = "1D"
GRID_DESCRIPTION = f"one program a tile of at most {MAX_BLOCK_SIZE} columns of a row; contiguous tensors are one row"
BLOCK_SIZE_SOURCE = "calculate_settings(min(n_cols, MAX_BLOCK_SIZE))"


def run(request: GenerateRequest, progress: Progress | None = None) -> GenerateResult:
    """Trace the reference again, and write its file.

    Raises:
        JobError: "bad_reference" or "untraceable" as in job `trace`; "unsupported" naming the op.
    """
    operation, facts = trace_reference(request.reference)
    try:
        names = local_names(load(request.reference), operation)
        planned = plan_file(operation, request.operation_name, request.function_class_name, names)
        text = ops_source(planned)
    except Unsupported as reason:
        closest = ", ".join(facts.closest_kernels) or "swiglu"
        raise JobError(
            "unsupported",
            f"no kernel can be generated for this reference: {reason}",
            f"Write it by hand after the closest Liger kernels ({closest}), or change the reference.",
        ) from None
    plan = planned.ops
    return GenerateResult(
        ops_source=text,
        exports=(
            request.function_class_name,
            f"{request.operation_name}_backward",
            f"{request.operation_name}_forward",
        ),
        signature=", ".join(argument.declaration for argument in plan.arguments),
        call_arguments=", ".join(argument.name for argument in plan.arguments),
        grid_dimensions=GRID_DIMENSIONS,
        grid_description=GRID_DESCRIPTION,
        block_size_source=BLOCK_SIZE_SOURCE,
        facts=facts,
    )
