"""What is one op in PyTorch and several steps in a kernel: softmax, norms, picking one element of each row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from tigon_tools.codegen.lowering import Traced
from tigon_tools.codegen.unsupported import Unsupported
from tigon_tools.codegen.values import Extent, Value
from tigon_tools.trace.axes import axes_of

if TYPE_CHECKING:
    from tigon_tools.codegen.row_lowering import RowLowering


def reduced_dims(node: fx.Node, rank: int) -> tuple[int, ...]:
    """None or an empty list stand for all."""
    given = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
    if given is None or isinstance(given, torch.dtype) or (isinstance(given, (list, tuple)) and not given):
        return tuple(range(rank))
    return _positive(given, rank)


def _positive(dims: Any, rank: int) -> tuple[int, ...]:
    """One dimension or several, counted from the first."""
    return tuple(int(d) % rank for d in (dims if isinstance(dims, (list, tuple)) else [dims]))


def _softmax(rows: RowLowering, node: fx.Node, known: Mapping[fx.Node, Traced]) -> Traced:
    m, source = rows.arithmetic, node.all_input_nodes[0]
    shifted, exponential, total = _exponentials(rows, node, known)
    is_log = "log" in str(node.target)
    value = m.subtract(shifted, m.call("tl.log", total)) if is_log else m.divide(exponential, total)
    rows.dimensions[node] = rows.dims_of(source)
    rows.note_name(node, value)
    types = frozenset({"float32"}) if node.args[2] else known[source].types
    return Traced(value, types, known[source].origins)


def _exponentials(rows: RowLowering, node: fx.Node, known: Mapping[fx.Node, Traced]) -> tuple[Value, Value, Value]:
    """x less its largest of the row, exp of that, and the sum of those."""
    m, source = rows.arithmetic, node.all_input_nodes[0]
    axes = rows.reduced_axes(node, source, reduced_dims(node, len(rows.dims_of(source)))[:1])
    x = known[source].value
    shifted = m.subtract(x, rows.extreme("row_max", x, axes))
    exponential = m.call("exp", shifted)
    return shifted, exponential, rows.sum(exponential, axes)


def _logsumexp(rows: RowLowering, node: fx.Node, known: Mapping[fx.Node, Traced]) -> Traced:
    m, source = rows.arithmetic, node.all_input_nodes[0]
    dims = reduced_dims(node, len(rows.dims_of(source)))
    axes = rows.reduced_axes(node, source, dims)
    x = known[source].value
    _, _, total = _exponentials(rows, node, known)
    value = m.add(rows.extreme("row_max", x, axes), m.call("tl.log", total))
    keep = bool(node.args[2]) if len(node.args) > 2 else False
    return rows.as_reduced(node, source, value, known[source].types, dims, keep)


def _moments(rows: RowLowering, x: Value, axes: frozenset[int]) -> tuple[Value, Value]:
    """Mean and the sum of squared differences from it: two passes, as an expert does it for accuracy."""
    m = rows.arithmetic
    mean = rows.over_sizes(rows.sum(x, axes), axes)
    return mean, rows.sum(m.square(m.subtract(x, mean)), axes)


def _layer_norm(rows: RowLowering, node: fx.Node, known: Mapping[fx.Node, Traced]) -> Traced:
    m = rows.arithmetic
    source, normalized, weight, bias, eps = node.args
    assert isinstance(source, fx.Node) and isinstance(normalized, (list, tuple))
    traced = known[source]
    rank = len(rows.dims_of(source))
    axes = rows.reduced_axes(node, source, range(rank - len(normalized), rank))
    mean, squares = _moments(rows, traced.value, axes)
    epsilon = known[eps].value if isinstance(eps, fx.Node) else m.constant(float(eps))  # type: ignore[arg-type]
    rstd = m.call("tl.rsqrt", m.add(rows.over_sizes(squares, axes), epsilon))
    normal = m.multiply(m.subtract(traced.value, mean), rstd)
    for parameter, apply in ((weight, m.multiply), (bias, m.add)):
        if isinstance(parameter, fx.Node):
            normal = apply(normal, known[parameter].value)
    rows.hints.setdefault(mean, "mean")
    rows.hints.setdefault(rstd, "rstd")
    statistic = str(node.meta["val"][1].dtype)[6:]
    types = traced.types if node.meta["val"][1].dtype == rows.input_dtype else frozenset({statistic})
    parts = (Traced(normal, traced.types, traced.origins), Traced(mean, types), Traced(rstd, types))
    rows.parts[node] = parts
    rows.dimensions[node] = rows.dims_of(source)
    return parts[0]


def _variance(rows: RowLowering, node: fx.Node, known: Mapping[fx.Node, Traced]) -> Traced:
    m, source = rows.arithmetic, node.all_input_nodes[0]
    traced = known[source]
    dims = reduced_dims(node, len(rows.dims_of(source)))
    axes = rows.reduced_axes(node, source, dims)
    if axes != {rows.last}:
        raise Unsupported(f"{node.target} over other dimensions than the last.")
    correction = node.kwargs.get("correction", 1)
    mean, squares = _moments(rows, traced.value, axes)
    count = m.subtract(m.values.size("n_cols"), m.constant(correction if correction is not None else 1))  # type: ignore[arg-type]
    value = m.divide(squares, count)
    keep = bool(node.kwargs.get("keepdim", False))
    first = rows.as_reduced(node, source, value, traced.types, dims, keep)
    rows.parts[node] = (first, Traced(mean, traced.types))
    return first


def _vector_norm(rows: RowLowering, node: fx.Node, known: Mapping[fx.Node, Traced]) -> Traced:
    m, source = rows.arithmetic, node.all_input_nodes[0]
    order = node.args[1] if len(node.args) > 1 else 2
    if order != 2:
        raise Unsupported(f"{node.target} of order {order}; kernels are generated for order 2.")
    rank = len(rows.dims_of(source))
    given = node.args[2] if len(node.args) > 2 else None
    dims = tuple(range(rank)) if given is None else _positive(given, rank)
    axes = rows.reduced_axes(node, source, dims)
    value = m.call("tl.sqrt", rows.sum(m.square(known[source].value), axes))
    keep = bool(node.args[3]) if len(node.args) > 3 else False
    return rows.as_reduced(node, source, value, known[source].types, dims, keep)


def _gather(rows: RowLowering, node: fx.Node, known: Mapping[fx.Node, Traced]) -> Traced:
    """`x[row, index[row]]`: the one element of the row whose column is the index."""
    m = rows.arithmetic
    source, dim, index = node.args[:3]
    assert isinstance(source, fx.Node) and isinstance(index, fx.Node)
    _check_picks(node, source, int(dim), index, known)  # type: ignore[arg-type]
    chosen = m.compare("equal", m.values.column_index(), known[index].value)
    value = m.call("row_sum", m.where(chosen, known[source].value, m.constant(0.0)))
    rows.dimensions[node] = rows.dims_of(index)
    return Traced(value, known[source].types, known[source].origins)


def _scatter(rows: RowLowering, node: fx.Node, known: Mapping[fx.Node, Traced]) -> Traced:
    """One element of each row replaced."""
    m = rows.arithmetic
    base, dim, index, new = node.args[:4]
    assert isinstance(base, fx.Node) and isinstance(index, fx.Node)
    _check_picks(node, base, int(dim), index, known)  # type: ignore[arg-type]
    chosen = m.compare("equal", m.values.column_index(), known[index].value)
    value = known[new].value if isinstance(new, fx.Node) else m.constant(new)  # type: ignore[arg-type]
    if "scatter_add" in str(node.target):
        value = m.add(known[base].value, value)
    types = known[base].types or frozenset({str(node.meta["val"].dtype)[6:]})
    axes = axes_of(node.meta["val"].shape, rows.space)
    rows.dimensions[node] = rows.dims_of(base)
    if axes is not None and not any(rows.dimensions[node]):
        rows.dimensions[node] = tuple(() if axis is None else (axis,) for axis in axes)
    return Traced(m.where(chosen, value, known[base].value), types, known[base].origins)


def _check_picks(node: fx.Node, source: fx.Node, dim: int, index: fx.Node, known: Mapping[fx.Node, Traced]) -> None:
    rank = len(source.meta["val"].shape)
    if dim % rank != rank - 1 or known[index].value.extent & Extent.COLUMNS or index.meta["val"].shape[-1] != 1:
        raise Unsupported(f"{node.target} picks elements in another way than one of each row.")


SPECIAL = {
    "aten._softmax": _softmax,
    "aten._log_softmax": _softmax,
    "aten.logsumexp": _logsumexp,
    "aten.native_layer_norm": _layer_norm,
    "aten.var": _variance,
    "aten.var_mean": _variance,
    "aten.linalg_vector_norm": _vector_norm,
    "aten.gather": _gather,
    "aten.scatter": _scatter,
    "aten.scatter_add": _scatter,
}
"""What is one op in PyTorch and several steps in a kernel."""
