"""How Triton's element types are held in numpy, and the rounding of those that numpy lacks.

Cause: numpy has no bfloat16 and no 8-bit floats, so the interpreter holds their bit patterns as unsigned
integers, and then computes with those integers (all versions). `decode` and `encode` are the one way
between patterns and numbers; every repaired operation goes through them.

`repair` replaces the interpreter's lookup of numpy types, which builds a table at each call (a third of
the time of a small operation), by one that keeps the table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import triton.language as tl
from triton.runtime import interpreter

from tigon_tools.interpreter.refusal import UnsupportedOnCPU
from tigon_tools.interpreter.replacing import replace

Array = npt.NDArray[Any]

NUMPY_TYPES: dict[str, np.dtype[Any]] = {
    "int1": np.dtype(bool),
    "int8": np.dtype(np.int8),
    "uint8": np.dtype(np.uint8),
    "int16": np.dtype(np.int16),
    "uint16": np.dtype(np.uint16),
    "int32": np.dtype(np.int32),
    "uint32": np.dtype(np.uint32),
    "int64": np.dtype(np.int64),
    "uint64": np.dtype(np.uint64),
    "fp16": np.dtype(np.float16),
    "fp32": np.dtype(np.float32),
    "fp64": np.dtype(np.float64),
    "bf16": np.dtype(np.uint16),
    "fp8e5": np.dtype(np.uint8),
    "fp8e5b16": np.dtype(np.uint8),
    "fp8e4nv": np.dtype(np.uint8),
    "fp8e4b8": np.dtype(np.uint8),
    "fp8e4b15": np.dtype(np.uint8),
}
_POINTER = np.dtype(np.uint64)

_FLOAT8_IN_TORCH = {
    "fp8e4nv": torch.float8_e4m3fn,
    "fp8e5": torch.float8_e5m2,
    "fp8e4b8": torch.float8_e4m3fnuz,
    "fp8e5b16": torch.float8_e5m2fnuz,
}

_BFLOAT16_NAN = np.uint16(0x7FFF)
"""The pattern that `cvt.rn.bf16.f32` gives for every NaN (PTX ISA, `cvt`)."""


def numpy_type(dtype: Any) -> np.dtype[Any]:
    """The numpy type that holds a Triton type: a block's element, a pointer's address."""
    scalar = dtype.scalar
    return _POINTER if scalar.is_ptr() else NUMPY_TYPES[scalar.name]


def is_pattern(dtype: Any) -> bool:
    """Whether blocks of this scalar type are held as bit patterns, not as numbers."""
    return bool(dtype.name == "bf16" or dtype.name.startswith("fp8"))


def decode(data: Array, dtype: Any) -> Array:
    """The numbers that `data` stands for: float32 for bfloat16 and 8-bit floats, else `data` itself. Exact.

    Raises:
        UnsupportedOnCPU: `dtype` is fp8e4b15, which torch does not have.
    """
    if dtype.name == "bf16":
        return bfloat16_to_float32(data)
    if dtype.name.startswith("fp8"):
        patterns = torch.from_numpy(np.ascontiguousarray(data)).view(_torch_float8(dtype))
        numbers: Array = patterns.to(torch.float32).numpy()
        return numbers
    return data


def encode(numbers: Array, dtype: Any) -> Array:
    """`numbers` (any float type) rounded to nearest even into `dtype`'s numpy form.

    8-bit floats saturate, as `cvt.rn.satfinite` does on sm_89 and later.
    """
    if dtype.name == "bf16":
        return float32_to_bfloat16(nearest_float32_for_rounding(numbers))
    if dtype.name.startswith("fp8"):
        torch_type = _torch_float8(dtype)
        limit = torch.finfo(torch_type).max
        clipped = np.clip(nearest_float32_for_rounding(numbers), -limit, limit)
        patterns: Array = torch.from_numpy(np.ascontiguousarray(clipped)).to(torch_type).view(torch.uint8).numpy()
        return patterns
    return numbers.astype(NUMPY_TYPES[dtype.name], copy=False)


def bfloat16_to_float32(patterns: Array) -> Array:
    return np.asarray(np.left_shift(patterns.astype(np.uint32), np.uint32(16))).view(np.float32)


def float32_to_bfloat16(numbers: Array) -> Array:
    """Round to nearest even; overflow goes to infinity, a NaN stays one."""
    bits = np.asarray(numbers, dtype=np.float32).view(np.uint32)
    half_below = np.uint32(0x7FFF)
    rounded = (bits + (half_below + ((bits >> np.uint32(16)) & np.uint32(1)))) >> np.uint32(16)
    return np.where(np.isnan(numbers), _BFLOAT16_NAN, rounded.astype(np.uint16))


def nearest_float32_for_rounding(numbers: Array) -> Array:
    """float32 such that rounding it once more gives what rounding `numbers` once would.

    From float64 this rounds to odd (Boldo and Melquiond, 2008): an inexact result gets an odd last bit, so
    that it cannot be mistaken for a tie by the next rounding.
    """
    if numbers.dtype != np.float64:
        return numbers.astype(np.float32, copy=False)
    nearest = numbers.astype(np.float32)
    back = nearest.astype(np.float64)
    inexact = (back != numbers) & np.isfinite(numbers)
    even = (nearest.view(np.uint32) & np.uint32(1)) == 0
    towards = np.where(back < numbers, np.float32(np.inf), np.float32(-np.inf))
    return np.where(inexact & even, np.nextafter(nearest, towards), nearest)


def flush_denormals(numbers: Array) -> Array:
    """float32 denormals as zeros of their sign, which is what a GPU's approximate functions read and give."""
    if numbers.dtype != np.float32:
        return numbers
    smallest = np.finfo(np.float32).smallest_normal
    return np.where(np.abs(numbers) < smallest, np.copysign(np.float32(0), numbers), numbers)


def _torch_float8(dtype: Any) -> torch.dtype:
    if dtype.name not in _FLOAT8_IN_TORCH:
        raise UnsupportedOnCPU(
            f"{dtype.name} is a format of older NVIDIA GPUs that neither numpy nor torch has. "
            "Use float8e4nv or float8e5, or test this kernel on a GPU."
        )
    return _FLOAT8_IN_TORCH[dtype.name]


def handle(data: Array, dtype: Any) -> Any:
    """A value of the interpreter: a numpy array and the Triton scalar type it is held for."""
    return interpreter.TensorHandle(data, dtype)


def as_tensor(data: Array, dtype: Any, shape: list[int]) -> Any:
    """A `tl.tensor` of scalar type `dtype`; `shape` is empty for a scalar, which is held as one element."""
    return tl.core.tensor(handle(data, dtype), tl.block_type(dtype, shape) if shape else dtype)


def repair() -> None:
    replace(interpreter, "_get_np_dtype", numpy_type)
