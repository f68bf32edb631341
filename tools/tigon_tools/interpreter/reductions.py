"""`tl.reduce` and `tl.associative_scan`: sums, maxima, sorts' helpers, and a kernel's own combine functions.

Causes and cures, at the two classes that all of them pass through (all versions):

- bfloat16 was summed as integers. float16 was summed in one go and rounded at the end; a GPU rounds each
  partial sum. Both are added in a tree of rounded halves (the order of a GPU's tree depends on the layout,
  so the last bits of a sum are not defined there either).
- A combine function was called once an element, un-rewritten, so that `and` in it meant Python's `and`.
  It is called on whole halves: log2(n) calls, neighbours first, so the order of operands is kept.
- `argmax` of a row of NaN raised (3.9), and NaN hid larger numbers (until 3.8).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.interpreter import ReduceOps, ScanOps

from tigon_tools.interpreter.element_types import Array, as_tensor, numpy_type
from tigon_tools.interpreter.replacing import replace, require
from tigon_tools.interpreter.syntax import BlockDecidesBranch

Tensors = tuple[Any, ...]
_HALVES = ("fp16", "bf16")


def reduce_blocks(reduction: Any, inputs: Tensors) -> list[Any]:
    """Reduce blocks of one shape along `reduction.axis` (None: all elements) with `reduction.combine_fn`."""
    known = _known_reduction(reduction.combine_fn, inputs)
    arrays = [one.handle.data for one in inputs]
    shape = arrays[0].shape
    axis = reduction.axis
    if axis is None:
        arrays, axis = [one.reshape(-1) for one in arrays], 0
    axis %= arrays[0].ndim
    if known is not None:
        results = known(arrays, axis)
    else:
        try:
            results = _tree(reduction.combine_fn, arrays, [one.dtype for one in inputs], axis)
        except BlockDecidesBranch:
            return list(reduction.generic_reduce(inputs))
    return [_shaped(one, tensor.dtype, reduction, shape, axis) for one, tensor in zip(results, inputs, strict=True)]


def scan_blocks(scan: Any, inputs: Tensors) -> list[Any]:
    """Inclusive scan of blocks of one shape along `scan.axis`, from the end where `scan.reverse`."""
    arrays = [one.handle.data for one in inputs]
    axis = scan.axis % arrays[0].ndim
    if scan.reverse:
        arrays = [np.flip(one, axis) for one in arrays]
    standard = tl.standard
    if len(arrays) == 1 and inputs[0].dtype.name not in _HALVES:
        if scan.combine_fn is require(standard, "_sum_combine"):
            results = [np.cumsum(arrays[0], axis=axis)]
        elif scan.combine_fn is require(standard, "_prod_combine"):
            results = [np.cumprod(arrays[0], axis=axis)]
        else:
            results = _prefixes(scan.combine_fn, arrays, [one.dtype for one in inputs], axis)
    else:
        results = _prefixes(scan.combine_fn, arrays, [one.dtype for one in inputs], axis)
    if scan.reverse:
        results = [np.flip(one, axis) for one in results]
    return [
        as_tensor(np.ascontiguousarray(one.astype(numpy_type(tensor.dtype))), tensor.dtype, list(one.shape))
        for one, tensor in zip(results, inputs, strict=True)
    ]


def _known_reduction(combine: Any, inputs: Tensors) -> Callable[[list[Array], int], list[Array]] | None:
    """A numpy reduction for the combine functions of `tl.sum`, `tl.max` and the like, where it means the same."""
    standard = tl.standard
    floating = inputs[0].dtype.is_floating()
    if inputs[0].dtype.name == "bf16" or inputs[0].dtype.name.startswith("fp8"):
        return None
    if combine is standard._sum_combine and inputs[0].dtype.name not in _HALVES:
        return lambda arrays, axis: [np.sum(arrays[0], axis=axis)]
    if combine is standard._elementwise_max:
        return lambda arrays, axis: [(np.fmax if floating else np.maximum).reduce(arrays[0], axis=axis)]
    if combine is standard._elementwise_min:
        return lambda arrays, axis: [(np.fmin if floating else np.minimum).reduce(arrays[0], axis=axis)]
    if floating and len(inputs) == 2 and bool(np.isnan(inputs[0].handle.data).any()):
        return None  # which NaN wins depends on the order of comparisons: leave it to the combine function
    if combine in (standard._argmax_combine_tie_break_left, standard._argmax_combine_tie_break_fast):
        return lambda arrays, axis: _extreme(np.argmax, arrays, axis)
    if combine in (standard._argmin_combine_tie_break_left, standard._argmin_combine_tie_break_fast):
        return lambda arrays, axis: _extreme(np.argmin, arrays, axis)
    return None


def _extreme(place: Callable[..., Any], arrays: list[Array], axis: int) -> list[Array]:
    where = place(arrays[0], axis=axis, keepdims=True)
    return [np.take_along_axis(one, where, axis=axis).squeeze(axis) for one in arrays]


def _tree(combine: Any, arrays: list[Array], dtypes: list[Any], axis: int) -> list[Array]:
    """Combine neighbours until one is left; block sizes are powers of two."""
    while arrays[0].shape[axis] > 1:
        arrays = _combined(
            combine,
            [_strided(one, axis, slice(0, None, 2)) for one in arrays],
            [_strided(one, axis, slice(1, None, 2)) for one in arrays],
            dtypes,
        )
    return [one.squeeze(axis) for one in arrays]


def _prefixes(combine: Any, arrays: list[Array], dtypes: list[Any], axis: int) -> list[Array]:
    """Hillis and Steele's scan (1986): each pass combines every element with the one `reach` before it."""
    length = arrays[0].shape[axis]
    reach = 1
    while reach < length:
        earlier = [_padded(one, axis, reach) for one in arrays]
        combined = _combined(combine, earlier, arrays, dtypes)
        kept = slice(0, reach)
        arrays = [
            np.concatenate([_strided(old, axis, kept), _strided(new, axis, slice(reach, None))], axis=axis)
            for old, new in zip(arrays, combined, strict=True)
        ]
        reach *= 2
    return arrays


def _padded(array: Array, axis: int, reach: int) -> Array:
    """`array` moved `reach` places on; the first places repeat elements and are not used."""
    return np.concatenate([_strided(array, axis, slice(0, reach)), _strided(array, axis, slice(0, -reach))], axis=axis)


def _combined(combine: Any, left: list[Array], right: list[Array], dtypes: list[Any]) -> list[Array]:
    """`combine` of two lists of blocks, in the blocks' types."""
    shape = list(left[0].shape)
    blocks = [
        as_tensor(np.ascontiguousarray(one), dtype, shape)
        for side in (left, right)
        for one, dtype in zip(side, dtypes, strict=True)
    ]
    results = combine(*blocks)
    if not isinstance(results, tuple | tl.core.tuple):
        results = (results,)
    semantic: Any = interpreter.interpreter_semantic
    cast = [semantic.cast(semantic.to_tensor(one), dtype) for one, dtype in zip(results, dtypes, strict=True)]
    return [np.broadcast_to(one.handle.data, shape) for one in cast]


def _strided(array: Array, axis: int, part: slice) -> Array:
    index: list[slice] = [slice(None)] * array.ndim
    index[axis] = part
    taken: Array = array[tuple(index)]
    return taken


def _shaped(result: Array, dtype: Any, reduction: Any, shape: tuple[int, ...], axis: int) -> Any:
    """A reduced array as a tensor; a scalar is held as one element."""
    data = np.asarray(result).astype(numpy_type(dtype))
    if reduction.keep_dims:
        kept = [1] * len(shape) if reduction.axis is None else [1 if i == axis else n for i, n in enumerate(shape)]
        return as_tensor(data.reshape(kept), dtype, kept)
    return as_tensor(data.reshape(data.shape or (1,)), dtype, list(data.shape))


def repair() -> None:
    replace(ReduceOps, "apply_impl", reduce_blocks)
    replace(ScanOps, "apply_impl", scan_blocks)
