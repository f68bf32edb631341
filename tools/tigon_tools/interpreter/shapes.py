"""Types and shapes of blocks, kept instead of built anew for each operation.

Cause: every operation makes a block type, which checks and names its shape, and a tensor, which wraps each
number of the shape; together about a third of the time of an operation on a small block (all versions).
Cure: what depends on the shape alone is made once for each shape, so that equal shapes are mostly one object.
"""

from __future__ import annotations

import math
from typing import Any

import triton.language as tl

from tigon_tools.interpreter.replacing import replace

_of_blocks: dict[tuple[int, ...], tuple[Any, int]] = {}
_names: dict[tuple[tuple[int, ...], str], str] = {}
_of_tensors: dict[tuple[int, ...], tuple[Any, Any]] = {}


def repair() -> None:
    make_block_type: Any = None
    constant: Any = tl.core.constexpr

    def block_type(self: Any, element_ty: Any, shape: Any) -> None:
        """As Triton's own, which is asked the first time that a shape and element type are seen."""
        numbers = tuple(getattr(one, "value", one) for one in shape)
        name = _names.get((numbers, element_ty.name))
        if name is None:
            make_block_type(self, element_ty, shape)
            _of_blocks[numbers] = self.shape, self.numel
            _names[numbers, element_ty.name] = self.name
            return
        self.element_ty, self.name = element_ty, name
        self.shape, self.numel = _of_blocks[numbers]

    def tensor(self: Any, handle: Any, type: Any) -> None:
        """A value of the interpreter: handle, type, dtype, and the shape as constants."""
        tl.core.base_value.__init__(self)
        numbers = tuple(type.shape) if isinstance(type, tl.block_type) else ()
        known = _of_tensors.get(numbers)
        if known is None:
            shape = tl.core.tuple([constant(one) for one in numbers])
            known = _of_tensors[numbers] = shape, constant(math.prod(numbers))
        self.handle, self.type, self.dtype = handle, type, type.scalar
        self.shape, self.numel = known

    compare: Any = None
    equal = constant(True)

    def same_shape(self: Any, other: Any) -> Any:
        return equal if other is self else compare(self, other)

    compare = replace(tl.core.tuple, "__eq__", same_shape)
    make_block_type = replace(tl.core.block_type, "__init__", block_type)
    replace(tl.core.tensor, "__init__", tensor)
