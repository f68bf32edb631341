"""Numbers in a graph that are sizes of the traced inputs: `sum / 64` is `sum / n_cols`.

Autograd writes sizes into the graph as numbers. Traced once more with other sizes, the same graph has other
numbers in those places, and what they follow is found by trying: rows, columns, their product, their inverses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from torch import fx

from tigon_tools.schema.errors import JobError
from tigon_tools.trace.axes import axes_of, resized
from tigon_tools.trace.graph import trace
from tigon_tools.trace.operation import TracedOperation
from tigon_tools.trace.reference import ArgumentSpec, LoadedReference

SIZES = "tigon_sizes"
"""Key in `fx.Node.meta`: position among the arguments to a `Size`."""


@dataclass(frozen=True)
class Size:
    """A number that is `factor` times what `name` says ("n_cols", "1 / n_rows"); no name where that is not known."""

    name: str
    factor: float = 1.0


UNKNOWN = Size("")

_FORMULAS: dict[str, Callable[[int, int], float]] = {
    "n_cols": lambda rows, columns: columns,
    "n_rows": lambda rows, columns: rows,
    "n_cols - 1": lambda rows, columns: columns - 1,
    "1 / n_cols": lambda rows, columns: 1 / columns,
    "1 / n_rows": lambda rows, columns: 1 / rows,
    "1 / (n_cols - 1)": lambda rows, columns: 1 / (columns - 1),
    "n_rows * n_cols": lambda rows, columns: rows * columns,
    "1 / (n_rows * n_cols)": lambda rows, columns: 1 / (rows * columns),
}


def mark_sizes(loaded: LoadedReference, op: TracedOperation) -> bool:
    """Note in each node's meta which of its numbers are sizes.

    Returns:
        False where the reference takes no other sizes, so that none of its numbers may be trusted for them.
    """
    other = _traced_larger(loaded, op)
    if other is None:
        return False
    before, after = _rows_and_columns(op), _rows_and_columns(other)
    for graph, larger in ((op.forward.graph, other.forward.graph), (op.backward.graph, other.backward.graph)):
        nodes, others = list(graph.nodes), list(larger.nodes)
        if [n.target for n in nodes if n.op == "call_function"] != [
            n.target for n in others if n.op == "call_function"
        ]:
            return False
        for node, twin in zip(nodes, others, strict=True):
            node.meta[SIZES] = dict(_sizes(node, twin, before, after))
    return True


def _sizes(
    node: fx.Node, twin: fx.Node, before: tuple[int, int], after: tuple[int, int]
) -> Iterator[tuple[int | str, Size]]:
    for place, number, other in _numbers(node, twin):
        if number != other and not math.isnan(number):
            yield place, _size(number, other, before, after)


def _size(number: float, other: float, before: tuple[int, int], after: tuple[int, int]) -> Size:
    if number == 0 or min(*before, *after) < 2:
        return UNKNOWN
    for name, formula in _FORMULAS.items():
        if math.isclose(other / number, formula(*after) / formula(*before), rel_tol=1e-9):
            factor = number / formula(*before)
            whole = round(factor)
            return Size(name, float(whole) if math.isclose(factor, whole, rel_tol=1e-9) else factor)
    return UNKNOWN


def _numbers(node: fx.Node, twin: fx.Node) -> Iterator[tuple[int | str, float, float]]:
    if node.op != "call_function":
        return
    pairs: list[tuple[int | str, Any, Any]] = [
        (i, a, b) for i, (a, b) in enumerate(zip(node.args, twin.args, strict=True))
    ]
    pairs += [(key, node.kwargs[key], twin.kwargs[key]) for key in node.kwargs]
    for place, number, other in pairs:
        if isinstance(number, (int, float)) and not isinstance(number, bool) and isinstance(other, (int, float)):
            yield place, float(number), float(other)


def _rows_and_columns(op: TracedOperation) -> tuple[int, int]:
    *leading, columns = op.iteration_space
    return math.prod(leading), columns


def _traced_larger(loaded: LoadedReference, op: TracedOperation) -> TracedOperation | None:
    """The same reference with every dimension longer by an amount of its own."""
    space = op.iteration_space
    if len(space) < 2:
        return None
    # Other amounts for each dimension, so that no two sizes or products of them stay alike.
    longer = tuple(size + 2 + 3 * position for position, size in enumerate(space))

    def longer_argument(argument: ArgumentSpec) -> ArgumentSpec:
        if argument.shape is None:
            return argument
        axes = axes_of(argument.shape, space, argument.dtype)
        return replace(argument, shape=resized(argument.shape, axes, longer))

    arguments = tuple(longer_argument(a) for a in loaded.arguments)
    try:
        return trace(replace(loaded, arguments=arguments))
    except JobError:
        return None
