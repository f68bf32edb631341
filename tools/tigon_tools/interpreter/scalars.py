"""Scalars: kernel arguments as the compiler types them, and one-element arrays as Python integers.

Causes and cures:

- Python floats reach the kernel as Python floats (all versions). The compiler makes them fp32, so
  `eps.to(tl.float32)` fails and `x_fp16 * eps` stays fp16 where a GPU computes in fp32. They become fp32.
- Integers from 2**31 to 2**32 are held as uint32 under the type int64, and booleans are int32 before 3.8.
- Scalars are arrays of one element, and `int()` of those is an error since numpy 2.4 (until Triton 3.7).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from tigon_tools.interpreter.element_types import as_tensor
from tigon_tools.interpreter.replacing import replace

INT32 = range(-(2**31), 2**31)
INT64 = range(-(2**63), 2**63)
UINT64 = range(2**64)


def scalar_tensor(value: bool | int | float) -> Any:
    """A `tl.tensor` of the type that the compiler gives a Python scalar: int1, int32, int64, uint64 or fp32.

    Raises:
        OverflowError: an integer that no 64-bit type holds.
    """
    if isinstance(value, bool):
        return as_tensor(np.array([value]), tl.int1, [])
    if isinstance(value, float):
        return as_tensor(np.array([value]).astype(np.float32), tl.float32, [])
    if value in INT32:
        return as_tensor(np.array([value], dtype=np.int32), tl.int32, [])
    if value in INT64:
        return as_tensor(np.array([value], dtype=np.int64), tl.int64, [])
    if value in UINT64:
        return as_tensor(np.array([value], dtype=np.uint64), tl.uint64, [])
    raise OverflowError(f"The integer argument {value} does not fit 64 bits.")


def repair() -> None:
    convert_other: Any = None

    def argument(value: Any) -> Any:
        return scalar_tensor(value) if isinstance(value, bool | int | float) else convert_other(value)

    convert_other = replace(interpreter, "_implicit_cvt", argument)
    replace(tl.core.tensor, "__index__", lambda tensor: int(tensor.handle.data.item()))
