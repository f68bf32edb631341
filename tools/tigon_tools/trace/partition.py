"""What is kept for the backward: the min-cut partitioner's choice, corrected.

Two corrections: a value that scalars alone decide is never kept, and where keeping inputs costs no
more bytes than what it chose, the inputs are kept, since they are alive anyway and point-wise work is
cheaper than memory traffic.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._functorch.partitioners import _extract_fwd_bwd_modules, min_cut_rematerialization_partition

from tigon_tools.trace.modes import CAST
from tigon_tools.trace.operation import EXPLICIT_CAST

_CONVERT = torch.ops.prims.convert_element_type.default


def partition(joint: fx.GraphModule, joint_inputs: Any, *, num_fwd_outputs: int, **kwargs: Any) -> Any:
    """Forward and backward modules of a joint graph; called by AOTAutograd as its `partition_fn`."""
    _mark_casts(joint)
    forward, backward = min_cut_rematerialization_partition(
        joint, joint_inputs, num_fwd_outputs=num_fwd_outputs, **kwargs
    )
    saved = [
        n.name for n in forward.graph.find_nodes(op="output")[0].args[0][num_fwd_outputs:] if isinstance(n, fx.Node)
    ]
    by_name = {node.name: node for node in joint.graph.nodes}
    chosen = [by_name[name] for name in saved if name in by_name]
    returned = joint.graph.find_nodes(op="output")[0].args[0][:num_fwd_outputs]
    better = _prefer_inputs(joint, chosen, {n for n in returned if isinstance(n, fx.Node)})
    if [n.name for n in better] == [n.name for n in chosen]:
        return forward, backward
    return _extract_fwd_bwd_modules(joint, better, [], num_fwd_outputs=num_fwd_outputs, **_extract_arguments(kwargs))


def _extract_arguments(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    names = _extract_fwd_bwd_modules.__code__.co_varnames
    return {key: value for key, value in kwargs.items() if key in names}


def _mark_casts(joint: fx.GraphModule) -> None:
    """`tigon.cast` becomes an op that the partitioner knows to be cheap; the mark remembers it."""
    for node in list(joint.graph.nodes):
        if node.op == "call_function" and node.target is CAST:
            node.target = _CONVERT
            node.meta[EXPLICIT_CAST] = True
    joint.recompile()


def _is_scalar(node: fx.Node) -> bool:
    value = node.meta.get("val")
    return (
        isinstance(value, torch.Tensor) and value.dim() == 0 and value.dtype in (torch.float64, torch.int64, torch.bool)
    )


def _prefer_inputs(joint: fx.GraphModule, saved: list[fx.Node], outputs: Collection[fx.Node]) -> list[fx.Node]:
    """The saved values, with scalars' derivatives replaced by the scalars, and inputs where they do.

    Inputs do where everything between them, or statistics of their rows, and what was chosen is point-wise. An
    output is there anyway, so no statistics are kept to spare it.
    """
    chosen: list[fx.Node] = []
    for node in saved:
        replacement: list[fx.Node] | None = [node]
        if node.op != "placeholder":
            sources = _sources(node)
            if sources is not None and node in outputs and any(n.op != "placeholder" for n in sources):
                sources = None
            if _is_scalar(node) or (sources is not None and _bytes(_large(sources, node)) <= _bytes([node])):
                replacement = sources
        chosen.extend(n for n in replacement or [node] if n not in chosen)
    intermediates = [n for n in chosen if n.op != "placeholder"]
    if intermediates:
        # Several intermediates of the same inputs: together the inputs may be the cheaper choice.
        sources = _all_sources(intermediates)
        if sources is not None and _bytes(sources) <= _bytes(intermediates):
            chosen = [n for n in chosen if n.op == "placeholder"]
            chosen.extend(n for n in sources if n not in chosen)
    order = {node: position for position, node in enumerate(joint.graph.nodes)}
    return sorted(chosen, key=lambda n: order[n])


def _large(sources: Sequence[fx.Node], beside: fx.Node) -> list[fx.Node]:
    return [n for n in sources if _elements(n) > _elements(beside) // SMALL]


def _all_sources(nodes: Sequence[fx.Node]) -> list[fx.Node] | None:
    found: list[fx.Node] = []
    for node in nodes:
        sources = _sources(node)
        if sources is None:
            return None
        found.extend(n for n in sources if n not in found)
    return found


SMALL = 8
"""A value with an eighth of the elements of another or fewer counts as small beside it: a row's statistic is."""


def _sources(node: fx.Node) -> list[fx.Node] | None:
    """The inputs, and the small results of other ops, that a value is computed from by point-wise ops.

    None if something else is on the way.
    """
    found: list[fx.Node] = []
    limit = _elements(node) // SMALL
    stack, seen = [node], set()
    while stack:
        current = stack.pop()
        if current in seen:
            continue
        seen.add(current)
        if current.op == "placeholder" or (current is not node and 0 < _elements(current) <= limit):
            found.append(current)
        elif current.op == "call_function" and is_pointwise(current):
            stack.extend(current.all_input_nodes)
        else:
            return None
    return found


def _elements(node: fx.Node) -> int:
    value = node.meta.get("val")
    return value.numel() if isinstance(value, torch.Tensor) else 0


def is_pointwise(node: fx.Node) -> bool:
    """Tagged so by ATen, or a cast, a fill or a broadcast."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return False
    return torch.Tag.pointwise in target.tags or str(target).rsplit(".", 1)[0] in _ALSO_POINTWISE


_ALSO_POINTWISE = frozenset(
    "prims.convert_element_type aten._to_copy aten.expand aten.unsqueeze aten.squeeze aten.clone aten.alias "
    "aten.detach aten.view aten.full aten.full_like aten.scalar_tensor aten.zeros_like aten.ones_like "
    "aten.zeros aten.ones aten.copy aten.where aten.positive aten.lift_fresh_copy".split()
)


def _bytes(nodes: Sequence[fx.Node]) -> int:
    total = 0
    for node in nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and value.dim() > 0:
            total += value.numel() * value.element_size()
    return total
