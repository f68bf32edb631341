"""The facts of a traced operation: what a profile is filled from and checked against."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import fx

from tigon_tools.schema.reference import Facts, InputFact, OutputFact
from tigon_tools.trace import tier as tiers
from tigon_tools.trace.axes import axes_of
from tigon_tools.trace.closest import closest
from tigon_tools.trace.formulas import forward_formulas, gradient_formulas
from tigon_tools.trace.operation import Argument, TracedOperation
from tigon_tools.trace.reference import LoadedReference

_NO_WORK = frozenset(
    "alias detach clone expand unsqueeze squeeze view convert_element_type _to_copy full scalar_tensor getitem "
    "zeros_like ones_like full_like slice select permute t transpose cat".split()
)


def facts_of(operation: TracedOperation, loaded: LoadedReference) -> Facts:
    """Everything `schema.reference.Facts` names."""
    tier, evidence = tiers.classify(operation)
    forward_ops = _count(operation.forward.graph)
    tensors = operation.tensors
    unsupported = _unsupported(operation, loaded)
    return Facts(
        tier=tier,
        tier_description=tiers.DESCRIPTIONS[tier],
        evidence=evidence,
        closest_kernels=closest(
            tier,
            (name.split(".")[-1] for name in forward_ops),
            len(tensors),
            len(operation.outputs),
            sum(a.kind == "parameter" or tiers.broadcast(operation, a.shape) for a in tensors),
        ),
        inputs=tuple(_input(a, operation, loaded) for a in operation.arguments),
        outputs=tuple(OutputFact(o.name, o.symbol, o.shape, o.dtype, o.differentiable) for o in operation.outputs),
        iteration_space=operation.iteration_space,
        saved_tensors=tuple(s.symbol for s in operation.saved if s.kind != "scalar"),
        recomputed=_recomputed(operation),
        saved_bytes=_bytes(s.forward for s in operation.saved if s.kind != "scalar"),
        eager_saved_bytes=_eager_saved_bytes(loaded, operation),
        min_bytes_forward=_bytes(_read(operation.forward.graph)) + _bytes(o.node for o in operation.outputs),
        min_bytes_backward=_bytes(_read(operation.backward.graph)) + _bytes(g.node for g in operation.gradients),
        flops_forward=_flops(operation.forward.graph),
        flops_backward=_flops(operation.backward.graph),
        forward_formulas=forward_formulas(operation),
        gradient_formulas=gradient_formulas(operation),
        forward_ops=forward_ops,
        backward_ops=_count(operation.backward.graph),
        precision_sensitive_ops=_precision_sensitive(operation),
        traced_dtype=str(operation.input_dtype)[6:],
        is_module=operation.is_module,
        generates=unsupported is None,
        generates_not_because=unsupported,
        notes=operation.notes,
        torch_version=torch.__version__,
    )


def _unsupported(operation: TracedOperation, loaded: LoadedReference) -> str | None:
    # Imported here: code generation reads traced operations, and this module only asks it one thing.
    from tigon_tools.codegen.support import unsupported

    return unsupported(operation, loaded.arguments)


def _input(argument: Argument, operation: TracedOperation, loaded: LoadedReference) -> InputFact:
    attribute, initial = loaded.state_of(argument.name)
    return InputFact(
        argument.name,
        argument.symbol,
        argument.kind,
        argument.shape,
        argument.dtype,
        argument.requires_grad,
        tiers.broadcast(operation, argument.shape),
        argument.default,
        argument.required,
        argument.annotation,
        None if argument.shape is None else axes_of(argument.shape, operation.iteration_space, argument.dtype),
        attribute,
        initial,
    )


def _count(graph: fx.Graph) -> dict[str, int]:
    names = Counter(tiers.op_name(n) for n in graph.nodes if n.op == "call_function")
    return {name: count for name, count in sorted(names.items()) if name.split(".")[-1] not in _NO_WORK}


def _recomputed(operation: TracedOperation) -> tuple[str, ...]:
    """Forward work that the backward graph does again: ops by name, where there is a point in naming them."""
    forward = {n.name for n in operation.forward.graph.nodes if n.op == "call_function"}
    again = [n for n in operation.backward.graph.nodes if n.op == "call_function" and n.name in forward]
    names = (
        tiers.op_name(n).split(".")[-1].lstrip("_") for n in again if tiers.op_name(n).split(".")[-1] not in _NO_WORK
    )
    return tuple(dict.fromkeys(names))


def _bytes(nodes: Iterable[fx.Node]) -> int:
    total = 0
    for node in dict.fromkeys(nodes):
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and not _is_scalar(value):
            total += value.numel() * value.element_size()
    return total


def _is_scalar(value: torch.Tensor) -> bool:
    return value.dim() == 0 and value.dtype in (torch.float64, torch.int64)


def _read(graph: fx.Graph) -> list[fx.Node]:
    return [n for n in graph.nodes if n.op == "placeholder" and n.users]


def _flops(graph: fx.Graph) -> int:
    total = 0
    for node in graph.nodes:
        if node.op != "call_function" or tiers.op_name(node).split(".")[-1] in _NO_WORK:
            continue
        value = node.meta.get("val")
        if tiers.is_reduction(node) and isinstance(node.args[0], fx.Node):
            value = node.args[0].meta.get("val")
        if isinstance(value, (tuple, list)):
            value = value[0]
        if isinstance(value, torch.Tensor) and not _is_scalar(value):
            total += value.numel()
    return total


def _precision_sensitive(operation: TracedOperation) -> tuple[str, ...]:
    names = []
    for graph in (operation.forward.graph, operation.backward.graph):
        names += [name for name in map(tiers.needs_float32, graph.nodes) if name is not None]
    return tuple(dict.fromkeys(names))


def _eager_saved_bytes(loaded: LoadedReference, operation: TracedOperation) -> int:
    """What autograd keeps when the reference runs as it is; each storage counted once."""
    values: dict[str, Any] = {}
    main = next((a.dtype for a in operation.tensors), "input")
    for spec, argument in zip(loaded.arguments, operation.arguments, strict=True):
        if argument.kind in ("scalar", "static"):
            values[spec.name] = spec.value
        else:
            values[spec.name] = spec.tensor(operation.input_dtype if argument.dtype == main else None)
    storages: dict[int, tuple[torch.Tensor, int]] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dim() > 0:
            storage = tensor.untyped_storage()
            # The tensor is kept with its size: a freed storage's address would be used again.
            storages[storage.data_ptr()] = (tensor, storage.nbytes())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        outputs: Sequence[Any] = loaded.call(values)
    del outputs
    return sum(size for _, size in storages.values())
