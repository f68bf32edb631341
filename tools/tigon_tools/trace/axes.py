"""Which dimension of the iteration space each dimension of an argument is."""

from __future__ import annotations

from collections.abc import Sequence

Axes = tuple[int | None, ...]
"""For each dimension its position in the iteration space; None for one of size one."""


def axes_of(shape: Sequence[int], space: Sequence[int], dtype: str = "input") -> Axes | None:
    """As PyTorch broadcasts, from the last dimension; else from the first, as one value a row (labels, row scales).

    Where both fit (a square example), integers are one a row. None where neither fits.
    """
    offset = len(space) - len(shape)
    if offset < 0:
        return None
    aligned: list[Axes] = []
    for start in (offset, 0):
        if all(size in (1, space[start + i]) for i, size in enumerate(shape)):
            aligned.append(tuple(start + i if size == space[start + i] else None for i, size in enumerate(shape)))
    if not aligned:
        return None
    return aligned[-1] if dtype.startswith(("int", "uint")) else aligned[0]


def resized(shape: Sequence[int], axes: Axes | None, space: Sequence[int]) -> tuple[int, ...]:
    """The argument's shape in another iteration space; unchanged where its axes are not known."""
    if axes is None:
        return tuple(shape)
    return tuple(size if axis is None else space[axis] for size, axis in zip(shape, axes, strict=True))
