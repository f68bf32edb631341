"""Atomic operations on 16-bit floats.

Cause: the interpreter's compiled part knows integers, float32 and float64 only, and refuses float16 and
bfloat16 (all versions; triton-lang/triton#5894). Cure: lanes are done one after the other, as a GPU does in
some order, each in float32 and rounded to the type.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from triton._C import libtriton
from triton._C.libtriton import ir
from triton.runtime.interpreter import InterpreterBuilder

from tigon_tools.interpreter.element_types import Array, decode, encode, handle
from tigon_tools.interpreter.refusal import UnsupportedOnCPU
from tigon_tools.interpreter.replacing import replace

_HALVES = ("fp16", "bf16")


def add_halves(pointers: Any, value: Any, mask: Any) -> Array:
    """Read, add and write float16 or bfloat16 lanes in order; returns the values found."""
    memory: Any = libtriton.interpreter  # type: ignore[attr-defined]
    dtype = value.dtype.scalar
    found = np.zeros(value.data.shape, dtype=value.data.dtype)
    added = decode(value.data, dtype).astype(np.float32)
    live, nothing = np.ones(1, dtype=bool), np.zeros(1, dtype=found.dtype)
    for lane in np.ndindex(value.data.shape):
        if mask.data[lane]:
            address = pointers.data[lane].reshape(1)
            old = memory.load(address, live, nothing, found.dtype)
            total = decode(old, dtype).astype(np.float32) + added[lane]
            memory.store(address, encode(total, dtype), live)
            found[lane] = old[0]
    return found


def repair() -> None:
    original: Any = None

    def read_modify_write(
        builder: Any, operation: Any, pointers: Any, value: Any, mask: Any, order: Any, scope: Any
    ) -> Any:
        dtype = value.dtype.scalar
        if dtype.name not in _HALVES:
            return original(builder, operation, pointers, value, mask, order, scope)
        if operation != ir.ATOMIC_OP.FADD:
            raise UnsupportedOnCPU(
                f"Of the atomic operations a GPU has only the addition for {dtype.name}. "
                "Accumulate in float32 and convert at the end."
            )
        return handle(add_halves(pointers, value, mask), dtype)

    original = replace(InterpreterBuilder, "create_atomic_rmw", read_modify_write)
