"""Names that the reference's author gave to values, found again in the traced graph.

The reference and the graph run side by side in float64 on the same random inputs; a local variable
and a node that hold the same numbers are the same value. Nothing but names depends on it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any

import torch
from torch import fx

from tigon_tools.trace.modes import ExactMode
from tigon_tools.trace.operation import TracedOperation
from tigon_tools.trace.reference import LoadedReference

LARGEST_EXAMPLE = 2**22
"""Elements of the iteration space; a larger one is not run for the sake of names."""

SPREAD = 8.0
"""Standard deviation of the inputs: wide enough that clamps and masks change something."""


def local_names(loaded: LoadedReference, op: TracedOperation) -> dict[str, str]:
    """Names of the forward graph's nodes, by node name; empty where the reference does not run alone."""
    if torch.Size(op.iteration_space).numel() > LARGEST_EXAMPLE:
        return {}
    values = _inputs(op)
    try:
        variables = _run_and_watch(loaded, values)
        known = _run_graph(op, values)
    except Exception:  # names are a courtesy; whatever is wrong with the reference is reported elsewhere
        return {}
    taken = set(values)
    names: dict[str, str] = {}
    for variable, value in variables:
        if variable in taken or variable.startswith("_"):
            continue
        for node, computed in known.items():
            if _same(value, computed):
                names.setdefault(node, variable)
                break
    return names


def _inputs(op: TracedOperation) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(0)
    values: dict[str, Any] = {}
    for argument in op.arguments:
        if argument.shape is None:
            value = argument.default
            values[argument.name] = 1.25 if value is None and argument.kind == "scalar" else value
        elif argument.dtype == "bool":
            values[argument.name] = torch.rand(argument.shape, generator=generator) > 0.5
        elif argument.dtype.startswith(("int", "uint")):
            values[argument.name] = torch.randint(0, 4, argument.shape, generator=generator)
        else:
            example = torch.randn(argument.shape, generator=generator, dtype=torch.float64)
            values[argument.name] = example * SPREAD
    return values


def _run_and_watch(loaded: LoadedReference, values: Mapping[str, Any]) -> list[tuple[str, torch.Tensor]]:
    """Every tensor that was ever the value of a local variable of the reference's code."""
    seen: list[tuple[str, torch.Tensor]] = []
    known: set[tuple[str, int]] = set()

    def watch(frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != loaded.filename:
            return None
        for name, value in frame.f_locals.items():
            if isinstance(value, torch.Tensor) and (name, id(value)) not in known:
                known.add((name, id(value)))
                seen.append((name, value))
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        with ExactMode(), torch.no_grad():
            loaded.call(dict(values))
    finally:
        sys.settrace(before)
    return seen


class _Float64(fx.Interpreter):
    """Runs a graph without its casts between floating types."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        self.computed: dict[str, torch.Tensor] = {}

    def run_node(self, n: fx.Node) -> Any:
        example = n.meta.get("val")
        is_cast = n.op == "call_function" and str(n.target).split(".")[1] in ("_to_copy", "convert_element_type")
        if is_cast and isinstance(example, torch.Tensor) and example.is_floating_point():
            result = self.fetch_args_kwargs_from_env(n)[0][0].double()
        else:
            result = super().run_node(n)
        if isinstance(result, torch.Tensor) and n.op == "call_function":
            self.computed[n.name] = result
        return result


def _run_graph(op: TracedOperation, values: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    by_placeholder = {a.placeholder.name: values[a.name] for a in op.arguments if a.placeholder is not None}
    arguments = [_tensor(by_placeholder[node.name]) for node in op.forward.graph.nodes if node.op == "placeholder"]
    interpreter = _Float64(op.forward)
    with torch.no_grad():
        interpreter.run(*arguments)
    return interpreter.computed


def _tensor(value: Any) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return value
    return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)


def _same(x: torch.Tensor, y: torch.Tensor) -> bool:
    if x.shape != y.shape or x.dtype != y.dtype or x.dim() == 0:
        return False
    if not x.is_floating_point():
        return torch.equal(x, y)
    return torch.allclose(x, y, rtol=1e-9, atol=0.0, equal_nan=True)
