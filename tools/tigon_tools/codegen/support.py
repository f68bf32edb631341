"""Whether code can be generated for a traced operation."""

from __future__ import annotations

from tigon_tools.codegen.ops_file import ops_source
from tigon_tools.codegen.planning import plan_file
from tigon_tools.codegen.unsupported import Unsupported
from tigon_tools.trace.operation import TracedOperation


def unsupported(op: TracedOperation) -> str | None:
    """None where code is generated, else one sentence that names the op that is in the way."""
    try:
        ops_source(plan_file(op, "operation", "OperationFunction"))
    except Unsupported as reason:
        return str(reason)
    return None
