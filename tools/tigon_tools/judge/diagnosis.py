"""What an error looks like: which elements, and what the values are instead."""

from __future__ import annotations

from collections.abc import Mapping

import torch

CONSTANT_SPREAD = 0.02
"""Relative spread within which a ratio or an offset counts as constant: above bfloat16's rounding
(0.4 %, twice), far below chance."""

DISTINCT = 1e-3
"""A ratio closer to 1 than this is no constant factor."""

MANY = 3
"""Fewer elements show no constant."""


def cause(
    name: str, got: torch.Tensor, want: torch.Tensor, limit: torch.Tensor, others: Mapping[str, torch.Tensor]
) -> str:
    """A clause on the likely cause, "" where the error has no known look.

    got, want: float64, of one shape, 0 where either is not finite. limit: the error allowed.
    others: right values of what it may have been confused with.
    """
    wrong = (got - want).abs() > limit
    if not bool(got.any()):
        return "it is zero everywhere"
    for other, truth in others.items():
        if other != name and _is(got, truth, limit):
            return f"it is {other}: the two are swapped"
    usable = wrong & (want.abs() > limit)
    ratio = _constant((got / want)[usable])
    if ratio is not None and abs(ratio - 1) > DISTINCT:
        if abs(ratio + 1) <= DISTINCT:
            return "it has the wrong sign"
        return f"it is wrong by a constant factor {ratio:.4g}"
    offset = _constant((got - want)[wrong])
    if offset is not None:
        return f"it is wrong by a constant {offset:.4g} that is added"
    return _moved(got, want, limit)


def _is(got: torch.Tensor, truth: torch.Tensor, limit: torch.Tensor) -> bool:
    if truth.shape != got.shape or not truth.is_floating_point():
        return False
    return bool(((got - truth).abs() <= limit + DISTINCT * truth.abs()).all())


def _constant(values: torch.Tensor) -> float | None:
    if values.numel() < MANY:
        return None
    middle = float(values.median())
    if middle == 0 or float((values - middle).abs().max()) >= CONSTANT_SPREAD * abs(middle):
        return None
    return middle


def _moved(got: torch.Tensor, want: torch.Tensor, limit: torch.Tensor) -> str:
    """Right values at the wrong place."""
    for dim, what in ((-1, "column"), (-2, "row")):
        if got.dim() < -dim or got.shape[dim] < MANY:
            continue
        for shift in (1, -1):
            inner = slice(1, -1)
            moved = torch.roll(want, shift, dim)
            near = [(t if dim == -1 else t.transpose(-1, -2))[..., inner] for t in (got, moved, limit)]
            if bool(((near[0] - near[1]).abs() <= near[2]).all()):
                return f"its values are moved by one {what}"
    if got.dim() > 1 and bool((want.diff(dim=-2) != 0).any()):
        first = want.narrow(-2, 0, 1).expand_as(want)
        if _is(got, first, limit):
            return "every row has the values of the first"
    return ""


def where(wrong: torch.Tensor) -> str:
    """Which elements, in words where they have a pattern."""
    count, total = int(wrong.sum()), wrong.numel()
    if count == total:
        return "everywhere"
    if wrong.dim() and wrong.shape[-1] > 1:
        columns = wrong.reshape(-1, wrong.shape[-1])
        pattern = _columns(columns) or _rows(columns)
        if pattern:
            return pattern
    return f"in {count} of {total} elements"


def _columns(wrong: torch.Tensor) -> str:
    """The last columns, in all rows that have any wrong."""
    width = wrong.shape[1]
    rows = wrong[wrong.any(dim=1)]
    which = rows.any(dim=0).nonzero().reshape(-1)
    first, last = int(which[0]), int(which[-1])
    dense = len(which) == last - first + 1 and bool(rows[:, which].all())
    if not dense or last != width - 1 or first == 0:
        return ""
    if first == width - 1:
        return "in the last column"
    return f"in the last {width - first} of {width} columns (from {first})"


def _rows(wrong: torch.Tensor) -> str:
    """Every row but the first, or only the last ones."""
    height = wrong.shape[0]
    which = wrong.any(dim=1).nonzero().reshape(-1)
    first = int(which[0])
    count = f" ({int(wrong.sum())} of {wrong.numel()} elements)"
    if height < 2 or first == 0 or len(which) != height - first:
        return ""
    if first == 1:
        return f"in every row but the first{count}"
    return f"in the last row{count}" if first == height - 1 else f"in every row from {first} on{count}"
