"""Compare a candidate's tensor with the truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from tigon_tools.judge.diagnosis import cause, where
from tigon_tools.judge.layouts import poison
from tigon_tools.judge.tolerance import EagerError, allowed, allowed_norm, is_off


@dataclass(frozen=True)
class Mismatch:
    """what: a sentence. excess: worst error over what is allowed (for choosing the worst case).

    special: only about NaN and infinities that get lost. better: only about a number in the place of a NaN
    that the reference makes of finite inputs, which may be the better formula.
    check: the finding it belongs to where that is one of its own ("unwritten").
    """

    what: str
    excess: float
    special: bool = False
    better: bool = False
    check: str | None = None


@dataclass(frozen=True)
class Expected:
    """What is right for one tensor.

    truth: in float64. eager: PyTorch's own, in the case's dtype; its shape and dtype are the candidate's too.
    error: eager's. others: truths by name that this one may have been confused with.
    slack: what float32 leaves open (`slack_of`); asked for only where a comparison would fail without it.
    skips_where_eager_is_off: for cases made to overflow and to sit on branches.
    tainted: elements made of inputs that are NaN or infinite; a difference there is `special`.
    """

    name: str
    truth: torch.Tensor
    eager: torch.Tensor
    error: EagerError
    slack: Callable[[], torch.Tensor]
    others: Mapping[str, torch.Tensor]
    skips_where_eager_is_off: bool = False
    tainted: torch.Tensor | None = None

    @property
    def untainted(self) -> torch.Tensor:
        return torch.ones_like(self.truth, dtype=torch.bool) if self.tainted is None else ~self.tainted


def compare(candidate: torch.Tensor, expected: Expected) -> Mismatch | None:
    """None where the candidate is right."""
    name, truth, eager = expected.name, expected.truth, expected.eager
    if candidate.shape != truth.shape:
        return Mismatch(f"{name} has shape {tuple(candidate.shape)}, not {tuple(truth.shape)}", float("inf"))
    if candidate.dtype != eager.dtype:
        return Mismatch(f"{name} is {_dtype(candidate)}, not {_dtype(eager)}", float("inf"))
    if not candidate.numel():
        return None
    if not candidate.dtype.is_floating_point:
        return _exact(name, candidate, eager)
    if _differs(candidate, expected, torch.zeros_like(truth)) is None:
        return None
    return _differs(candidate, expected, expected.slack())


def _differs(candidate: torch.Tensor, expected: Expected, slack: torch.Tensor) -> Mismatch | None:
    name, truth, eager = expected.name, expected.truth, expected.eager
    limit = allowed(truth, eager, expected.error, slack)
    unwritten = (candidate == poison(candidate.dtype)) & ~((candidate.double() - truth).abs() <= limit)
    if bool(unwritten.any()):
        return Mismatch(
            f"{name} is not written {where(unwritten)}: what the memory held before is left",
            float("inf"),
            check="unwritten",
        )
    return (
        _not_finite(candidate, expected, limit)
        or _values(candidate, expected, limit, slack)
        or _lost(candidate, expected, limit)
    )


def _exact(name: str, candidate: torch.Tensor, eager: torch.Tensor) -> Mismatch | None:
    wrong = candidate != eager
    if not bool(wrong.any()):
        return None
    return Mismatch(f"{name} differs {where(wrong)}", float("inf"))


def _not_finite(candidate: torch.Tensor, expected: Expected, limit: torch.Tensor) -> Mismatch | None:
    """NaN or infinity where the reference and eager have a number, unless that is next to the largest one."""
    truth = expected.truth
    largest = torch.finfo(candidate.dtype).max
    inside = torch.isfinite(truth) & (truth.abs() + limit.nan_to_num() < largest) & torch.isfinite(expected.eager)
    bad = inside & ~torch.isfinite(candidate) & expected.untainted
    if not bool(bad.any()):
        return None
    at = tuple(int(i) for i in bad.nonzero()[0])
    why = (
        f"a value leaves the range of {_dtype(candidate)} on the way, so it was not upcast to float32"
        if largest < torch.finfo(torch.float32).max
        else "a value overflows on the way, or comes from outside the tensor"
    )
    return Mismatch(
        f"{expected.name} is {float(candidate[at])} where the reference is {float(truth[at]):.6g} {where(bad)}: {why}",
        float("inf"),
    )


def _lost(candidate: torch.Tensor, expected: Expected, limit: torch.Tensor) -> Mismatch | None:
    """NaN and infinities of the reference that eager has too, and all that comes of those of the inputs."""
    right, eager = expected.truth.to(candidate.dtype), expected.eager
    finite = ~expected.untainted & torch.isfinite(right) & ((eager.double() - expected.truth).abs() <= limit)
    agreed = finite | ~torch.isfinite(right) & ((torch.isnan(right) & torch.isnan(eager)) | (right == eager))
    same = (torch.isnan(candidate) & torch.isnan(right)) | (candidate == right)
    same |= (candidate.double() - expected.truth).abs() <= limit  # just under the largest number
    lost = agreed & ~same
    if not bool(lost.any()):
        return None
    better = torch.isnan(right) & torch.isfinite(candidate) & expected.untainted
    only_better = not bool((lost & ~better).any())
    lost = lost if only_better else lost & ~better
    at = tuple(int(i) for i in lost.nonzero()[0])
    return Mismatch(
        f"{expected.name} is {float(candidate[at]):.6g} where the reference is {float(right[at])} {where(lost)}",
        float("inf"),
        special=True,
        better=only_better,
    )


def _values(candidate: torch.Tensor, expected: Expected, limit: torch.Tensor, slack: torch.Tensor) -> Mismatch | None:
    """Numbers, element by element and as a whole."""
    truth, eager = expected.truth, expected.eager
    usable = torch.isfinite(truth.to(candidate.dtype)) & torch.isfinite(eager) & torch.isfinite(candidate)
    usable &= expected.untainted & torch.isfinite(limit)
    if expected.skips_where_eager_is_off:
        usable &= ~is_off(eager, truth)
    got = torch.where(usable, candidate.double(), 0.0)
    want = torch.where(usable, truth.double(), 0.0)
    limit = torch.where(usable, limit, torch.finfo(torch.float64).max)
    error = (got - want).abs()
    wrong = error > limit
    if not bool(wrong.any()):
        return _norm(
            expected,
            got,
            want,
            torch.where(usable, eager.double(), 0.0),
            torch.where(usable, slack, 0.0),
            candidate.dtype,
        )
    excess = error / limit
    at = tuple(int(i) for i in (excess == excess.max()).nonzero()[0])
    why = cause(expected.name, got, want, limit, expected.others)
    return Mismatch(
        f"{expected.name} is wrong {where(wrong)}: {float(got[at]):.6g} instead of {float(want[at]):.6g} at {at}, "
        f"{float(excess.max()):.3g} times the error allowed{'; ' if why else ''}{why}",
        float(excess.max()),
    )


def _norm(
    expected: Expected,
    got: torch.Tensor,
    want: torch.Tensor,
    eager: torch.Tensor,
    slack: torch.Tensor,
    dtype: torch.dtype,
) -> Mismatch | None:
    error = float((got - want).norm())
    limit = allowed_norm(want, eager, dtype, expected.error, slack)
    if error <= limit:
        return None
    return Mismatch(
        f"{expected.name} is inaccurate as a whole: the norm of its error is {error:.3g}, "
        f"{error / limit:.3g} times what is allowed; no element stands out, so precision is lost on the way",
        error / limit,
    )


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype)[6:]
