"""Whether code can be generated for a traced operation."""

from __future__ import annotations

from collections.abc import Sequence

from tigon_tools.codegen.ops_file import ops_source
from tigon_tools.codegen.planning import plan_file
from tigon_tools.codegen.unsupported import Unsupported
from tigon_tools.trace.operation import TracedOperation
from tigon_tools.trace.reference import ArgumentSpec


def unsupported(op: TracedOperation, arguments: Sequence[ArgumentSpec] = ()) -> str | None:
    """None where code is generated, else one sentence that names the op that is in the way.

    arguments: the reference's, as given.
    """
    try:
        refuse_float64(arguments)
        ops_source(plan_file(op, "operation", "OperationFunction"))
    except Unsupported as reason:
        return str(reason)
    return None


def refuse_float64(arguments: Sequence[ArgumentSpec]) -> None:
    """Traced in 16 bits like any other, such an input would pass for one of them.

    Raises:
        Unsupported: an input is float64.
    """
    for argument in arguments:
        if argument.shape is not None and argument.dtype == "float64":
            raise Unsupported(
                f"`{argument.name}` is float64, and generated kernels compute in float32: give it as float32."
            )
