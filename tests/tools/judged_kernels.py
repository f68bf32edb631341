"""Triton kernels for the judge's tests: right ones, and each with one thing wrong.

The text is written to a file, since Triton reads the source of a kernel.
"""

from __future__ import annotations

from pathlib import Path

from tigon_tools.schema.reference import InputSpec, Reference

SILU_MUL = '''
import torch
import triton
import triton.language as tl


@triton.jit
def _forward_kernel(a_ptr, b_ptr, c_ptr, a_stride, b_stride, c_stride, scale, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_cols
    a = tl.load(a_ptr + row * a_stride + columns, mask=mask, other=0).to(tl.float32)
    b = tl.load(b_ptr + row * b_stride + columns, mask=mask, other=0).to(tl.float32)
    gate = scale * a
    c = gate * tl.sigmoid(gate) * b
    tl.store(c_ptr + row * c_stride + columns, c, mask=mask)


@triton.jit
def _backward_kernel(
    dc_ptr, a_ptr, b_ptr, da_ptr, db_ptr, dc_stride, a_stride, b_stride, d_stride, scale, n_cols, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_cols
    dc = tl.load(dc_ptr + row * dc_stride + columns, mask=mask, other=0).to(tl.float32)
    a = tl.load(a_ptr + row * a_stride + columns, mask=mask, other=0).to(tl.float32)
    b = tl.load(b_ptr + row * b_stride + columns, mask=mask, other=0).to(tl.float32)
    gate = scale * a
    sigmoid = tl.sigmoid(gate)
    silu = gate * sigmoid
    da = dc * b * scale * (sigmoid + silu * (1 - sigmoid))
    db = dc * silu
    tl.store(da_ptr + row * d_stride + columns, da, mask=mask)
    tl.store(db_ptr + row * d_stride + columns, db, mask=mask)


def _rows(x):
    """As rows whose elements lie side by side; other layouts are copied."""
    return x.reshape(-1, x.shape[-1]) if x.stride(-1) == 1 else x.contiguous().reshape(-1, x.shape[-1])


class SiluMul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, scale):
        a_rows, b_rows = _rows(a), _rows(b)
        c = torch.empty_like(a_rows, memory_format=torch.contiguous_format)
        rows, n_cols = a_rows.shape
        if rows:
            _forward_kernel[(rows,)](
                a_rows, b_rows, c, a_rows.stride(0), b_rows.stride(0), c.stride(0), scale, n_cols,
                BLOCK=triton.next_power_of_2(n_cols),
            )
        ctx.save_for_backward(a_rows, b_rows)
        ctx.scale = scale
        return c.reshape(a.shape)

    @staticmethod
    def backward(ctx, dc):
        a, b = ctx.saved_tensors
        dc_rows = _rows(dc)
        da = torch.empty_like(a, memory_format=torch.contiguous_format)
        db = torch.empty_like(da)
        rows, n_cols = a.shape
        if rows:
            _backward_kernel[(rows,)](
                dc_rows, a, b, da, db, dc_rows.stride(0), a.stride(0), b.stride(0), da.stride(0), ctx.scale, n_cols,
                BLOCK=triton.next_power_of_2(n_cols),
            )
        return da.reshape(dc.shape), db.reshape(dc.shape), None
'''

SILU_MUL_REFERENCE = Reference(
    "import torch\n\n\ndef silu_mul(a, b, scale: float = 1.0):\n    return torch.nn.functional.silu(scale * a) * b\n",
    "silu_mul",
    inputs=(InputSpec("a", (3, 48)), InputSpec("b", (3, 48))),
)

SQUASH = """
import torch
import triton
import triton.language as tl


@triton.jit
def _forward_kernel(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    x = tl.load(x_ptr + offsets, mask=mask, other=0).to(tl.float32)
    square = x * x
    tl.store(y_ptr + offsets, square / (1 + square), mask=mask)


@triton.jit
def _backward_kernel(dy_ptr, x_ptr, dx_ptr, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    dy = tl.load(dy_ptr + offsets, mask=mask, other=0).to(tl.float32)
    x = tl.load(x_ptr + offsets, mask=mask, other=0).to(tl.float32)
    inverse = 1 / (1 + x * x)
    tl.store(dx_ptr + offsets, dy * 2 * x * inverse * inverse, mask=mask)


class Squash(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        if x.numel():
            _forward_kernel[(triton.cdiv(x.numel(), 4096),)](x, y, x.numel(), BLOCK=4096)
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        dy = dy.contiguous()
        dx = torch.empty_like(x)
        if x.numel():
            _backward_kernel[(triton.cdiv(x.numel(), 4096),)](dy, x, dx, x.numel(), BLOCK=4096)
        return dx
"""

SQUASH_REFERENCE = Reference(
    "import torch\n\n\ndef squash(x):\n    square = x.float() ** 2\n    return (square / (1 + square)).to(x.dtype)\n",
    "squash",
    inputs=(InputSpec("x", (3, 48)),),
)


def write(folder: Path, text: str, *changes: tuple[str, str]) -> Path:
    """The text with each change made, in a file; a change that finds nothing is an error of the test."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path = folder / "candidate.py"
    path.write_text(text)
    return path
