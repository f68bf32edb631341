"""Small vectors beside the rows, whose elements the reference picks one by one (`weight[0]`).

Each element is a value of its own; the vector as a whole is a value only where it is a gradient, which the launcher
puts together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import fx

from tigon_tools.codegen.lowering import Traced
from tigon_tools.codegen.values import Value, Values

VECTOR = "vector"
"""The operation of a value whose operands are the elements."""

MOST_ELEMENTS = 8
"""Of a small vector: each is loaded, and summed up, by itself."""

_SAME = frozenset({"aten.view", "aten.reshape", "aten.alias", "aten.clone"})


def is_picked_from(placeholder: fx.Node) -> bool:
    """Whether a tensor is used element by element only."""
    shape = placeholder.meta["val"].shape
    picked = all(str(user.target) == "aten.select.int" for user in placeholder.users if user.op != "output")
    return len(shape) == 1 and shape[0] <= MOST_ELEMENTS and picked


def vector(values: Values, elements: Sequence[Value]) -> Value:
    return values.make(VECTOR, *elements, kind=elements[0].kind)


def lowered(
    values: Values,
    node: fx.Node,
    known: Mapping[fx.Node, Traced],
    lower: Callable[[fx.Node, Mapping[fx.Node, Traced]], Traced],
) -> Traced | None:
    """What a node is that makes, takes or picks from a small vector; None for any other.

    lower: a point-wise op on elements.
    """
    packet = str(node.target).rsplit(".", 1)[0]
    if packet == "aten.arange":
        return _numbers(values, node)
    vectors = [n for n in node.all_input_nodes if known[n].value.operation == VECTOR]
    if not vectors:
        return None
    if packet == "aten.select":
        index: Any = node.args[2]
        traced = known[vectors[0]]
        return replace(traced, value=traced.value.operands[index])
    if packet in _SAME:
        return known[vectors[0]]
    elements = []
    for index in range(len(known[vectors[0]].value.operands)):
        picked = {n: replace(known[n], value=known[n].value.operands[index]) for n in vectors}
        elements.append(lower(node, {**known, **picked}))
    return replace(elements[0], value=vector(values, [element.value for element in elements]))


def _numbers(values: Values, node: fx.Node) -> Traced | None:
    """`arange`: 0, 1, 2... as the gradient of a pick compares with them."""
    example = node.meta["val"]
    if example.dim() != 1 or example.numel() > MOST_ELEMENTS:
        return None
    arguments = [argument for argument in node.args if isinstance(argument, int)]
    return Traced(vector(values, [values.constant(int(i)) for i in torch.arange(*arguments)]), frozenset({"int64"}))
