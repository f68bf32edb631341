"""Kernels for the GPU tests of jobs; their own file, as Triton reads a kernel's source."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _double(Y, X, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + offsets, mask=offsets < n)
    tl.store(Y + offsets, x * 2, mask=offsets < n)


@triton.jit
def _far(Y, far, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(Y + far + tl.arange(0, BLOCK), 1.0)


def double(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    _double[(triton.cdiv(x.numel(), 128),)](y, x, x.numel(), BLOCK=128)
    return y


def store_far_away(y: torch.Tensor) -> None:
    """2⁴⁰ elements beyond the tensor: no allocation reaches that far."""
    _far[(1,)](y, 2**40, BLOCK=16)
