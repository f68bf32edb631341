"""What cannot be traced, said for the one who wrote the reference: which line, why, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from tigon_tools.schema.errors import JobError
from tigon_tools.trace.modes import ScalarMustBeFixed
from tigon_tools.trace.reference import LoadedReference, line_of


def explained(problem: Exception, loaded: LoadedReference) -> JobError | ScalarMustBeFixed:
    """The error to raise for what went wrong while tracing; a refusal of ours among its causes is kept."""
    cause: BaseException | None = problem
    while cause is not None:
        if isinstance(cause, (JobError, ScalarMustBeFixed)):
            return cause
        cause = cause.__cause__ or cause.__context__
    line = line_of(problem, loaded.filename)
    text = str(problem).strip().splitlines()[0] if str(problem).strip() else ""
    where = f"line {line} of the reference" if line else "the reference"
    data_dependent = type(problem).__name__ in ("DataDependentOutputException", "GuardOnDataDependentSymNode")
    if data_dependent or "DynamicOutputShape" in type(problem).__name__:
        return JobError(
            "untraceable",
            f"{where} needs a tensor's value while tracing ({text}): data-dependent control flow or shapes.",
            "Write it with torch.where or masks.",
            line,
        )
    if "convert all Tensors to FakeTensors" in text:
        return JobError(
            "untraceable",
            f"{where} uses a tensor that is not an argument.",
            "Make it an argument, or a parameter or buffer of an nn.Module.",
            line,
        )
    return JobError(
        "untraceable",
        f"{where} fails: {type(problem).__name__}: {text}",
        "Correct the reference, or the inputs it is traced with (shapes, dtypes).",
        line,
    )


def check_outputs(results: tuple[Any, ...], values: Sequence[torch.Tensor]) -> None:
    """Refuse outputs that are no tensors, and inputs handed back.

    Raises:
        JobError: "untraceable" with the position of the output.
    """
    for position, result in enumerate(results):
        if not isinstance(result, torch.Tensor):
            raise JobError(
                "untraceable",
                f"output {position} is a {type(result).__name__}, not a tensor.",
                "Return tensors only.",
            )
        if any(result is value for value in values):
            raise JobError(
                "untraceable",
                f"output {position} is an input, unchanged.",
                "Return only what is computed; a caller has its inputs already.",
            )


def check_random(forward: fx.GraphModule) -> None:
    """Refuse what has no one right result.

    Raises:
        JobError: "untraceable" naming the op.
    """
    for node in forward.graph.nodes:
        target = node.target
        if isinstance(target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in target.tags:
            raise JobError(
                "untraceable",
                f"{target} draws random numbers: there is no one result to compare a kernel with.",
                "Leave dropout and noise out, or give the random tensor as an input.",
            )
