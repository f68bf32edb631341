"""`tl.histogram`: counts of the numbers from 0 to the number of bins, as int32.

Cause: numpy's histogram counts a number equal to the number of bins in the last one, and the counts took the
type of the numbers, so that storing them could write past the end (until 3.8). Cure: count what has a bin.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import InterpreterBuilder

from tigon_tools.interpreter.element_types import handle
from tigon_tools.interpreter.replacing import replace


def histogram(builder: Any, numbers: Any, bins: int, mask: Any) -> Any:
    """A handle of `bins` int32 counts; what is masked off or has no bin is not counted."""
    counted = (numbers.data >= 0) & (numbers.data < bins)
    if mask is not None:
        counted &= mask.data
    counts = np.bincount(numbers.data[counted].astype(np.int64), minlength=bins)
    return handle(counts.astype(np.int32), tl.int32)


def repair() -> None:
    replace(InterpreterBuilder, "create_histogram", histogram)
