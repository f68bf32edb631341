"""How wrong a candidate may be: a small multiple of how wrong eager PyTorch is in that dtype.

For each element with truth t: |c - t| <= FACTOR * (max(r * |t| + a, e) + s) + ULPS * ulp(t) + UNDERFLOW,
where e is eager's error on that element, r eager's largest error relative to the element, over the larger half of the elements, and a its largest absolute error over
the smaller half. Two parts, because a result near zero after a cancellation has the absolute error of the
terms that cancelled. Both are measured on the case and on a sample of 4096 elements of the same kind,
since a single element can be right by luck. s is how much the truth moves when the inputs and all
intermediates move by one float32 ulp (`rounding.py`): a kernel cannot be held to more than its inputs say
(Triton's exp on a GPU is 30 ulp off at 80, where it is that sensitive), nor to what cancels on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

FACTOR = 4.0
"""Of eager's own error. A kernel that computes in float32 and rounds once has at most eager's; another
order of operations or another implementation of exp doubles it; a lower precision exceeds it 100-fold."""

ULPS = 4.0
"""Units in the last place on top, where eager happens to be exact (a product of two float32 is, half the time)."""

UNDERFLOW = 1e-30
"""Absolute. A float32 intermediate below 1.2e-38 vanishes (sigmoid(-89) is 0), and factors of up to 1e8
may follow; results smaller than this carry no information in float32, so no dtype is held to them."""

ULPS_NORM = 2.0
"""As ULPS, for the norm of the whole error: chance evens out over the elements, so half as much is enough."""

OFF = 0.25
"""Relative error from which eager has lost the value: an intermediate overflowed, or it took another branch."""

FINER = 1 / 16
"""Share of an ulp for the second move: what depends smoothly on a value moves by a 16th then, a jump by as much."""

SMOOTH = 1 / 4
"""Largest share of the first move that the second may be: between 1/16 and 1, with room for curvature."""

SAMPLE = (16, 256)
"""Rows and columns of the sample."""


@dataclass(frozen=True)
class EagerError:
    """relative: over the larger half; absolute: over the smaller half; mean: root mean square of the error
    over that of the truth."""

    relative: float = 0.0
    absolute: float = 0.0
    mean: float = 0.0

    def __or__(self, other: EagerError) -> EagerError:
        """The larger of both."""
        return EagerError(
            max(self.relative, other.relative), max(self.absolute, other.absolute), max(self.mean, other.mean)
        )


def is_off(eager: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """Where eager is finite and yet no approximation of the truth: such elements show nothing about a candidate."""
    finite = torch.isfinite(truth) & torch.isfinite(eager)
    if not bool(finite.any()):
        return torch.zeros_like(finite)
    error = (eager.double() - truth).abs()
    typical = truth[finite].abs().median()
    return finite & (error > OFF * truth.abs()) & (error > OFF * typical)


def eager_error(eager: torch.Tensor, truth: torch.Tensor, *, skips_where_off: bool = False) -> EagerError:
    """Measure it where both are finite; with `skips_where_off` not where eager has lost the value."""
    if not eager.is_floating_point():
        return EagerError()
    usable = torch.isfinite(truth) & torch.isfinite(eager)
    if skips_where_off:
        usable &= ~is_off(eager, truth)
    if not bool(usable.any()):
        return EagerError()
    size, error = truth[usable].abs(), (eager[usable].double() - truth[usable]).abs()
    middle = size.median()
    large, small = size >= middle, size <= middle
    relative = (error[large] / size[large].clamp_min(1e-300)).max() if bool(middle > 0) else error.new_zeros(())
    scale = float(size.norm())
    mean = float(error.norm()) / scale if scale > 0 else 0.0
    return EagerError(float(relative), float(error[small].max()), mean)


def allowed(truth: torch.Tensor, eager: torch.Tensor, error: EagerError, slack: torch.Tensor) -> torch.Tensor:
    """The largest error that passes, for each element; in the dtype of `eager`."""
    info = torch.finfo(eager.dtype)
    ulp = truth.abs().clamp_min(info.tiny) * info.eps
    own = (eager.double() - truth).abs().nan_to_num(0.0, 0.0, 0.0)
    terms = torch.maximum(error.relative * truth.abs() + error.absolute, own) + slack
    return FACTOR * terms + ULPS * ulp + UNDERFLOW


def allowed_norm(
    truth: torch.Tensor, eager: torch.Tensor, dtype: torch.dtype, error: EagerError, slack: torch.Tensor
) -> float:
    """The largest norm of the whole error that passes; both with 0 where elements are not compared."""
    own = float((eager - truth).norm())
    ulp = truth.abs().clamp_min(torch.finfo(dtype).tiny) * torch.finfo(dtype).eps
    eager_part = max(own, error.mean * float(truth.norm())) + float(slack.norm())
    return FACTOR * eager_part + ULPS_NORM * float(ulp.norm()) + UNDERFLOW


def slack_of(
    truth: torch.Tensor, moved: Sequence[tuple[torch.Tensor, torch.Tensor]], flushed: torch.Tensor
) -> torch.Tensor:
    """What float32 leaves open about each element: its moves, and what a flush to zero on the way makes of it.

    moved: the truths for inputs and intermediates that differ in their last bit, and by `FINER` of it.
    A move that stays as large is a jump: there the other branch was taken, and right and wrong are as they are.
    """
    slack = torch.zeros_like(truth)
    if not truth.is_floating_point():
        return slack
    for whole, part in moved:
        far, near = (whole - truth).abs().nan_to_num(0.0, 0.0, 0.0), (part - truth).abs()
        slack = torch.maximum(slack, torch.where(near <= SMOOTH * far, far, 0.0))
    lost = torch.where(torch.isfinite(flushed), (flushed - truth).abs(), torch.inf)
    return torch.where(torch.isfinite(truth), torch.maximum(slack, lost), 0.0)


def term_error(upstream: Sequence[torch.Tensor]) -> float:
    """float32's rounding of the terms that a gradient through a reduction is the difference of.

    A softmax gives y * (dy - sum(y * dy)): next to a y of 1 the terms are as large as dy, and the
    difference is nothing, in every implementation.
    """
    sizes = [float(g.abs().max()) for g in upstream if g.numel()]
    return max(sizes, default=0.0) * torch.finfo(torch.float32).eps
