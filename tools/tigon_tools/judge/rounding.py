"""The reference in float64 with float32's rounding put in between its operations.

What a result moves when every intermediate moves by one float32 ulp is what no float32 kernel can be held to:
1 - tanh(x)**2 is all rounding where tanh(x) is next to 1. This is Monte Carlo arithmetic (D. S. Parker, 1997),
with two values an operation. Backward operations run under the same modes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

SMALLEST = torch.finfo(torch.float32).tiny
"""Smallest normal float32; a GPU flushes results below it to zero where it is asked to be fast."""


class _Intermediates(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Changes each float64 result that an operation makes; views and writes in place stay as they are."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        results = func(*args, **(kwargs or {}))
        if any(r.alias_info is not None for r in func._schema.returns):
            return results
        if isinstance(results, (tuple, list)):
            return type(results)(self._changed(r) for r in results)
        return self._changed(results)

    def _changed(self, result: Any) -> Any:
        if isinstance(result, torch.Tensor) and result.dtype == torch.float64:
            return self.change(result)
        return result

    def change(self, value: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError


class LastBitsMoved(_Intermediates):  # type: ignore[no-untyped-call]
    """Each intermediate moved by `share` of a float32 epsilon, up or down at random; the seed fixes the directions."""

    def __init__(self, seed: int, share: float = 1.0) -> None:
        super().__init__()
        self._seed = seed
        self._share = share

    def change(self, value: torch.Tensor) -> torch.Tensor:
        self._seed += 1
        return last_bit_moved(value, self._seed, self._share)


class Flushed(_Intermediates):  # type: ignore[no-untyped-call]
    """Each intermediate too small for a normal float32 is zero."""

    def change(self, value: torch.Tensor) -> torch.Tensor:
        return torch.where(value.abs() < SMALLEST, 0.0, value)


def last_bit_moved(value: torch.Tensor, seed: int, share: float = 1.0) -> torch.Tensor:
    """Float64 values moved by `share` of a float32 epsilon of themselves, each up or down."""
    generator = torch.Generator().manual_seed(seed)
    sign = torch.randint(0, 2, value.shape, generator=generator, dtype=value.dtype) * 2 - 1
    return value * (1 + sign * (share * torch.finfo(torch.float32).eps))
