"""What is kept for the backward: the min-cut partitioner's choice, corrected.

Three corrections: a value that scalars alone decide is never kept; one number that a whole tensor was reduced to
always is, since whatever needs it would have to wait for another pass over that tensor; and where keeping
inputs moves no more bytes than what it chose, the inputs are kept, since they are alive anyway and point-wise
work is cheaper than memory traffic. An input is read again; anything else but an output is written before that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._functorch.partitioners import _extract_fwd_bwd_modules, min_cut_rematerialization_partition
from torch.utils.checkpoint import CheckpointPolicy

from tigon_tools.trace.modes import CAST
from tigon_tools.trace.operation import EXPLICIT_CAST

_CONVERT = torch.ops.prims.convert_element_type.default


def partition(joint: fx.GraphModule, joint_inputs: Any, *, num_fwd_outputs: int, **kwargs: Any) -> Any:
    """Forward and backward modules of a joint graph; called by AOTAutograd as its `partition_fn`."""
    _mark_casts(joint)
    _keep_totals(joint)
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


def _keep_totals(joint: fx.GraphModule) -> None:
    """The partitioner looks at sizes only, and would count eight labels twice rather than keep their number."""
    for node in joint.graph.nodes:
        if node.op == "call_function" and _elements(node) == 1 and not is_pointwise(node):
            node.meta["recompute"] = CheckpointPolicy.MUST_SAVE


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
    free = max((_bytes([n]) for n in joint.graph.find_nodes(op="placeholder")), default=0) // SMALL
    chosen: list[fx.Node] = []
    for node in saved:
        replacement: list[fx.Node] | None = [node]
        if node.op != "placeholder":
            sources = _sources(node)
            if sources is not None and node in outputs and any(n.op != "placeholder" for n in sources):
                sources = None
            if _is_scalar(node) or (sources is not None and _costs_no_more(sources, node, outputs, free)):
                replacement = sources
        chosen.extend(n for n in replacement or [node] if n not in chosen)
    intermediates = [n for n in chosen if n.op != "placeholder"]
    if intermediates:
        # Several intermediates of the same inputs: together the inputs may be the cheaper choice.
        sources = _all_sources(intermediates)
        if sources is not None and _bytes(sources) <= sum(_moved(node, outputs) for node in intermediates):
            chosen = [n for n in chosen if n.op == "placeholder"]
            chosen.extend(n for n in sources if n not in chosen)
    order = {node: position for position, node in enumerate(joint.graph.nodes)}
    return sorted(chosen, key=lambda n: order[n])


def _costs_no_more(sources: Sequence[fx.Node], node: fx.Node, outputs: Collection[fx.Node], free: int) -> bool:
    """free: bytes of inputs that count as nothing beside the largest input."""
    large = [n for n in sources if _elements(n) > _elements(node) // SMALL]
    moved = _bytes(large)
    return moved <= _moved(node, outputs) or (moved <= free and all(n.op == "placeholder" for n in large))


def _moved(node: fx.Node, outputs: Collection[fx.Node]) -> int:
    """Bytes that keeping it costs: written by the forward, unless it is an output, and read by the backward."""
    return _bytes([node]) * (1 if node in outputs else 2)


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
