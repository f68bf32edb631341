"""Job `trace`: the facts of a reference."""

from __future__ import annotations

from tigon_tools.jobs import Progress
from tigon_tools.schema.reference import Facts, Reference, TraceRequest, TraceResult
from tigon_tools.trace.facts import facts_of
from tigon_tools.trace.graph import trace
from tigon_tools.trace.operation import TracedOperation
from tigon_tools.trace.reference import load


def run(request: TraceRequest, progress: Progress | None = None) -> TraceResult:
    """Trace forward and backward.

    Raises:
        JobError: "bad_reference" or "untraceable", naming the line or op.
    """
    operation, facts = trace_reference(request.reference)
    return TraceResult(
        request.reference, facts, str(operation.forward.code).strip(), str(operation.backward.code).strip()
    )


def trace_reference(reference: Reference) -> tuple[TracedOperation, Facts]:
    """Load, trace, and state the facts."""
    loaded = load(reference)
    operation = trace(loaded)
    return operation, facts_of(operation, loaded)
