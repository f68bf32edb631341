"""The tier of an operation, from its forward graph, with the ops that decide it.

The rules are the project's (`element-wise`, `reduction`, `fused/complex` are Liger's words):
tier 1 is point-wise work over one iteration space, tier 2 reduces over the last dimension, and
anything that mixes elements in another way is tier 3.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch
from torch import fx

from tigon_tools.schema.reference import Evidence
from tigon_tools.trace.operation import TracedOperation
from tigon_tools.trace.partition import is_pointwise

DESCRIPTIONS = {1: "element-wise", 2: "reduction", 3: "fused/complex"}

LONGEST_BLOCK = 65536
"""Columns. Liger's `calculate_settings` launches no wider block (MAX_FUSED_SIZE)."""

_REDUCTIONS = frozenset(
    "sum mean amax amin max min var var_mean std prod norm linalg_vector_norm logsumexp _softmax _log_softmax "
    "native_layer_norm any all argmax argmin".split()
)
_PRODUCTS = frozenset("mm bmm addmm baddbmm dot matmul convolution _scaled_dot_product_flash_attention_for_cpu".split())
_GATHERS = frozenset(
    "gather index index_select embedding scatter scatter_add index_put index_add index_copy select_scatter "
    "slice_scatter embedding_dense_backward masked_scatter nll_loss_forward take".split()
)
_SCANS = frozenset("cumsum cumprod cummax cummin logcumsumexp sort topk argsort kthvalue median unique".split())
_MOVES = frozenset("cat stack slice select split split_with_sizes permute transpose t roll flip repeat".split())


def classify(operation: TracedOperation) -> tuple[int, tuple[Evidence, ...]]:
    """The tier, and a sentence for each thing that decides it, strongest first."""
    nodes = [n for n in operation.forward.graph.nodes if n.op == "call_function"]
    complex_evidence, reductions, pointwise, moves = [], [], [], []
    for node in nodes:
        name = op_name(node)
        short = name.split(".")[1] if "." in name else name
        if short in _PRODUCTS:
            complex_evidence.append(_evidence(node, "is a matrix product", operation))
        elif short in _GATHERS:
            complex_evidence.append(_evidence(node, "gathers or scatters by index", operation))
        elif short in _SCANS:
            complex_evidence.append(_evidence(node, "needs a scan or a sort of the row", operation))
        elif short in _REDUCTIONS:
            reductions.append(node)
        elif is_pointwise(node):
            pointwise.append(node)
        elif short in _MOVES:
            moves.append(node)
        elif short != "getitem":
            complex_evidence.append(_evidence(node, "is neither point-wise nor a known reduction", operation))
    complex_evidence.extend(_complex_reductions(reductions, operation))
    tier = 3 if complex_evidence else 2 if reductions else 1
    return tier, tuple(
        complex_evidence + _row_evidence(reductions, tier, operation) + _rest(pointwise, moves, tier, operation)
    )


def op_name(node: fx.Node) -> str:
    """ "aten.mul.Tensor" as "aten.mul"; Python's own `getitem` as it is."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return getattr(node.target, "__name__", str(node.target))
    return ".".join(str(node.target).split(".")[:2])


def _complex_reductions(reductions: Sequence[fx.Node], operation: TracedOperation) -> list[Evidence]:
    found = []
    for node in reductions:
        dims, shape = _reduced(node)
        rank = len(shape)
        if dims is None or any(dim % rank != rank - 1 for dim in dims):
            what = "reduces over everything" if dims is None or len(dims) == rank else f"reduces over dimensions {dims}"
            # A loss over rows that ends in one number still reads each row once; the rest is tier 3.
            found.append(_evidence(node, f"{what} of {shape}, not over the last one alone", operation))
        elif shape[-1] > LONGEST_BLOCK:
            found.append(_evidence(node, f"reduces rows of {shape[-1]}, beyond a block of {LONGEST_BLOCK}", operation))
    return found


def _reduced(node: fx.Node) -> tuple[tuple[int, ...] | None, tuple[int, ...]]:
    """Dimensions reduced (None for all), and the shape they are of."""
    source = node.args[0]
    shape = tuple(source.meta["val"].shape) if isinstance(source, fx.Node) else ()
    short = op_name(node).split(".")[-1]
    if short == "native_layer_norm":
        return tuple(range(len(shape) - len(node.args[1]), len(shape))), shape  # type: ignore[arg-type]
    position = 2 if short in ("linalg_vector_norm", "norm") else 1
    dims = node.args[position] if len(node.args) > position else node.kwargs.get("dim")
    if isinstance(dims, int):
        return (dims,), shape
    if isinstance(dims, (list, tuple)) and dims:
        return tuple(int(d) for d in dims), shape
    return None, shape


def _row_evidence(reductions: Sequence[fx.Node], tier: int, operation: TracedOperation) -> list[Evidence]:
    if tier == 3:
        return [_evidence(node, "is a reduction besides", operation) for node in reductions[:3]]
    return [
        _evidence(node, f"reduces over the last dimension, a row of {_reduced(node)[1][-1]}", operation)
        for node in reductions
    ]


def _rest(
    pointwise: Sequence[fx.Node], moves: Sequence[fx.Node], tier: int, operation: TracedOperation
) -> list[Evidence]:
    names = sorted({op_name(node) for node in pointwise if not _is_plumbing(node)})
    found = []
    if tier == 1:
        every = "every op is" if not moves else "every op that computes is"
        space = " × ".join(str(size) for size in operation.iteration_space)
        found.append(
            Evidence(f"{every} point-wise over one iteration space of {space}: {', '.join(names)}.", tuple(names))
        )
    elif names:
        found.append(Evidence(f"the rest is point-wise: {', '.join(names)}.", tuple(names)))
    if moves:
        moved = sorted({op_name(node) for node in moves})
        found.append(Evidence(f"{', '.join(moved)} only moves data.", tuple(moved)))
    reduced = [a.name for a in operation.arguments if a.requires_grad and broadcast(operation, a.shape)]
    if reduced and tier < 3:  # a matrix product has no one iteration space to broadcast over
        what = " and ".join(reduced)
        found.append(
            Evidence(
                f"the gradient of {what}, which broadcasts over rows, is a reduction over rows in the backward.",
                tuple(sorted({op_name(n) for n in operation.backward.graph.nodes if op_name(n) == "aten.sum"})),
            )
        )
    return found


def broadcast(operation: TracedOperation, shape: tuple[int, ...] | None) -> bool:
    """Smaller than the iteration space."""
    if shape is None:
        return False
    padded = (1,) * (len(operation.iteration_space) - len(shape)) + tuple(shape)
    return padded != operation.iteration_space


def _is_plumbing(node: fx.Node) -> bool:
    short = op_name(node).split(".")[-1]
    return short in (
        "_to_copy",
        "convert_element_type",
        "expand",
        "unsqueeze",
        "squeeze",
        "alias",
        "detach",
        "clone",
        "view",
        "full",
        "scalar_tensor",
    )


def _evidence(node: fx.Node, says: str, operation: TracedOperation) -> Evidence:
    line = _line(node)
    where = f" (line {line})" if line else ""
    return Evidence(f"{op_name(node)} {says}{where}.", (op_name(node),), line)


def _line(node: fx.Node) -> int | None:
    """The reference's line, from the stack that tracing kept, where it kept one."""
    stack = node.meta.get("stack_trace") or ""
    lines = re.findall(r'File "<reference [^"]*", line (\d+)', stack)
    return int(lines[-1]) if lines else None


def is_reduction(node: fx.Node) -> bool:
    return node.op == "call_function" and op_name(node).split(".")[-1] in _REDUCTIONS


def needs_float32(node: fx.Node) -> str | None:
    """The op's short name, where computing it in 16 bits would lose what matters; else None."""
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return None
    short = op_name(node).split(".")[-1].lstrip("_")
    return short if short in _PRECISION_SENSITIVE else None


_PRECISION_SENSITIVE = frozenset(
    "sigmoid tanh exp exp2 expm1 log log2 log10 log1p erf erfc rsqrt sqrt pow sin cos tan sinh cosh asin acos atan "
    "div reciprocal softmax log_softmax logsumexp var var_mean mean sum native_layer_norm linalg_vector_norm gelu "
    "softplus mish silu".split()
)
