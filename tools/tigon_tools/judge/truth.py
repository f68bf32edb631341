"""What is right: the reference in float64; and what eager PyTorch makes of it in the case's dtype."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch

from tigon_tools.trace.modes import ExactMode
from tigon_tools.trace.reference import LoadedReference


@dataclass(frozen=True)
class Outcome:
    """Outputs, and gradients by the name of the input (None where there is none)."""

    outputs: tuple[torch.Tensor, ...]
    gradients: dict[str, torch.Tensor | None]


def run_reference(
    loaded: LoadedReference,
    values: Mapping[str, Any],
    wants: Sequence[str],
    upstream: Sequence[torch.Tensor] | None,
    differentiable: Sequence[int],
    *,
    exact: bool,
    rounding: AbstractContextManager[object] | None = None,
) -> Outcome:
    """Run the reference forward and backward on copies of the values.

    exact: in float64, with the author's casts to narrower floats left out.
    rounding: a mode of `rounding.py` to run both directions under.

    Raises:
        Whatever the reference raises on these shapes.
    """
    given: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, torch.Tensor):
            copy = value.double() if exact and value.is_floating_point() else value.clone()
            given[name] = copy.requires_grad_(name in wants)
        else:
            given[name] = value
    with warnings.catch_warnings(), rounding or contextlib.nullcontext():
        warnings.simplefilter("ignore")
        with ExactMode() if exact else contextlib.nullcontext():
            outputs = loaded.call(given)
        gradients = _gradients(outputs, given, wants, upstream, differentiable)
    return Outcome(tuple(o.detach() for o in outputs), gradients)


def _gradients(
    outputs: Sequence[torch.Tensor],
    given: Mapping[str, Any],
    wants: Sequence[str],
    upstream: Sequence[torch.Tensor] | None,
    differentiable: Sequence[int],
) -> dict[str, torch.Tensor | None]:
    if upstream is None or not wants:
        return {}
    pairs = [(outputs[i], g) for i, g in zip(differentiable, upstream, strict=True) if outputs[i].requires_grad]
    if not pairs:
        return dict.fromkeys(wants)
    found = torch.autograd.grad(
        [o for o, _ in pairs], [given[n] for n in wants], [g.to(o.dtype) for o, g in pairs], allow_unused=True
    )
    return dict(zip(wants, found, strict=True))
