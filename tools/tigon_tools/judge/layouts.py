"""Tensors in layouts that hurt, inside guarded storage.

Every tensor lies between guard zones, so that a kernel without a mask writes into those and not into
somebody else's memory, and is found out.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

GUARD_ELEMENTS = 65536
"""On either side: as long as the widest block that Liger launches, so a dropped mask stays inside."""

POISON_FRACTION = 0.7331
"""Of the largest finite number: what memory holds that nobody wrote. Finite, so that NaN stays evidence;
an odd fraction, so that no honest result has just these bits."""

ODD_OFFSET = 3
"""Elements that "offset" tensors start late: no 16-byte alignment in any dtype."""


def poison(dtype: torch.dtype) -> float | int | bool:
    """The value of unwritten memory."""
    if dtype.is_floating_point:
        return float(torch.tensor(torch.finfo(dtype).max * POISON_FRACTION, dtype=dtype))
    return True if dtype is torch.bool else torch.iinfo(dtype).max // 2


_empty, _full = torch.empty, torch.full
"""The real ones: in the candidate's process torch's are replaced by some that call `guarded`."""


@dataclass(frozen=True)
class Guarded:
    """A tensor and the whole storage around it. start: of the tensor; extent: elements it spans, gaps included."""

    tensor: torch.Tensor
    storage: torch.Tensor
    start: int
    extent: int

    def overrun(self) -> tuple[str, int] | None:
        """Where outside the tensor's own elements something was written, and how far or how many.

        "past the end" and "before the start" with the distance; "between the rows" of a strided tensor
        with the number of elements. None where nothing was.
        """
        fill = self.storage.new_full((), poison(self.storage.dtype))
        changed = self.storage != fill
        own = changed.as_strided(self.tensor.size(), self.tensor.stride(), self.start)
        without_repeats(own).fill_(False)
        if not bool(changed.any()):
            return None
        end = self.start + self.extent
        after, before = changed[end:], changed[: self.start]
        if bool(after.any()):
            return "past the end", int(after.nonzero().max()) + 1
        if bool(before.any()):
            return "before the start", self.start - int(before.nonzero().min())
        return "between the rows", int(changed.sum())


def without_repeats(tensor: torch.Tensor) -> torch.Tensor:
    """A view that names each element in memory once: dimensions of stride 0 are cut to one."""
    for dim, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.shape[dim] > 1:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


def guarded(
    size: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype, device: str, offset: int = 0
) -> Guarded:
    """Poisoned memory for a tensor of this size and stride; `offset` elements after where it is aligned."""
    extent = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if all(size) else 0
    start = GUARD_ELEMENTS + offset
    storage = _full((start + extent + GUARD_ELEMENTS,), poison(dtype), dtype=dtype, device=device)
    view = _empty((0,), dtype=dtype, device=device)
    view.set_(storage.untyped_storage(), start, size, stride)
    return Guarded(view, storage, start, extent)


def strides_of(shape: tuple[int, ...], layout: str) -> tuple[int, ...]:
    """Strides of a layout, in elements.

    "halves": rows of a tensor twice as wide, as `x.chunk(2, dim=-1)` gives; "alternate": every other
    element of a row; "transposed": the last two dimensions exchanged; "expanded": stride 0 in the first
    dimension that can; "offset": contiguous (see `offset_of`).
    """
    contiguous = _contiguous(shape)
    if layout == "alternate":
        return tuple(2 * stride for stride in contiguous)
    if len(shape) < 2 or layout in ("contiguous", "offset"):
        return contiguous
    if layout == "halves":
        return _contiguous((*shape[:-1], 2 * shape[-1]))
    if layout == "transposed":
        swapped = _contiguous((*shape[:-2], shape[-1], shape[-2]))
        return (*swapped[:-2], swapped[-1], swapped[-2])
    if layout == "expanded":
        row = next((p for p, size in enumerate(shape[:-1]) if size > 1), 0)
        return tuple(0 if p == row else s for p, s in enumerate(_contiguous((*shape[:row], 1, *shape[row + 1 :]))))
    raise ValueError(layout)


def offset_of(layout: str) -> int:
    """Elements by which a layout starts late."""
    return ODD_OFFSET if layout == "offset" else 0


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
