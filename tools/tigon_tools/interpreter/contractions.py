"""`tl.dot`: products of blocks, accumulated in float32 and rounded once to the result's type.

Causes and cures (all versions): bfloat16 operands were multiplied as integers; a float16 result was
accumulated in float16 numpy; shapes that the compiler rejects were accepted. A GPU may use tf32 for
float32 operands unless `input_precision="ieee"` is given; here float32 products are exact IEEE ones,
so an error that tf32 would make does not show on a CPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from triton.runtime import interpreter
from triton.runtime.interpreter import InterpreterBuilder

from tigon_tools.interpreter.element_types import Array, decode, encode, handle
from tigon_tools.interpreter.replacing import replace


def dot(builder: Any, lhs: Any, rhs: Any, accumulator: Any, precision: Any, imprecise: Any) -> Any:
    dtype = accumulator.dtype.scalar
    left, right = (decode(one.data, one.dtype.scalar) for one in (lhs, rhs))
    if dtype.is_int():
        # float64 is exact here (at most 2**14 a product, 2**20 products) and much faster than integer loops.
        exact = np.matmul(left.astype(np.float64), right.astype(np.float64)).astype(np.int64)
        return handle((exact + accumulator.data).astype(accumulator.data.dtype), dtype)
    wide = np.float64 if dtype.name == "fp64" else np.float32
    product: Array = np.matmul(left.astype(wide), right.astype(wide))
    return handle(encode(product + decode(accumulator.data, dtype).astype(wide), dtype), dtype)


def repair() -> None:
    replace(InterpreterBuilder, "create_dot", dot)
    rules: dict[str, Any] = interpreter.interpreter_builder.codegen_fns
    rules["min_dot_size"] = _smallest_dot


def _smallest_dot(lhs_type: Any, rhs_type: Any) -> tuple[int, int, int]:
    """What NVIDIA's backend accepts in this Triton: rows, columns, and the length of the sums."""
    from triton.backends.nvidia import compiler

    rule: Any = compiler.min_dot_size  # it does not look at the target it is given
    smallest: tuple[int, int, int] = rule(None)(lhs_type, rhs_type)
    return smallest
