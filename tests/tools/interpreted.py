"""The repaired interpreter, switched on, and kernels that apply a jit function element by element.

Import it before any module with kernels.
"""

from tigon_tools.interpreter import activate

activate()

import torch  # noqa: E402  kernels have to be defined after activation
import triton  # noqa: E402
import triton.language as tl  # noqa: E402


@triton.jit
def _one(x_ptr, z_ptr, count, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < count
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, FUNCTION(x), mask=mask)


@triton.jit
def _two(x_ptr, y_ptr, z_ptr, count, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < count
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, FUNCTION(x, y), mask=mask)


@triton.jit
def _three(x_ptr, y_ptr, w_ptr, z_ptr, count, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < count
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    w = tl.load(w_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, FUNCTION(x, y, w), mask=mask)


def elementwise(function, *inputs: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
    """`function` (a jit function of one to three blocks) of 1-D tensors, stored as `dtype` (the first's)."""
    result = torch.zeros(inputs[0].numel(), dtype=dtype or inputs[0].dtype)
    block = triton.next_power_of_2(result.numel())
    kernel = (_one, _two, _three)[len(inputs) - 1]
    kernel[(1,)](*inputs, result, result.numel(), FUNCTION=function, BLOCK=block)
    return result


@triton.jit
def _whole(x_ptr, z_ptr, FUNCTION: tl.constexpr, BLOCK: tl.constexpr, RESULTS: tl.constexpr):
    z = FUNCTION(tl.load(x_ptr + tl.arange(0, BLOCK)))
    if RESULTS == 1:
        tl.store(z_ptr, z)
    else:
        tl.store(z_ptr + tl.arange(0, RESULTS), z)


def of_block(function, block: torch.Tensor, results: int, dtype: torch.dtype) -> torch.Tensor:
    """`function` of one block, giving a block of `results` elements, or a scalar for 1."""
    stored = torch.zeros(results, dtype=dtype)
    _whole[(1,)](block, stored, FUNCTION=function, BLOCK=block.numel(), RESULTS=results)
    return stored
