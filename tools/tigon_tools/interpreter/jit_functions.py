"""Triton's own jit functions, when Triton was imported before the interpreter was asked for.

Cause: `@triton.jit` looks at TRITON_INTERPRET when a function is defined. `tl.sum`, `tl.cdiv`, `tl.rand` and
the others of `triton.language` are then functions for the compiler, which cannot be called from the
interpreter (all versions). Cure: each is replaced, wherever `triton.language` names it, by the interpreted
function that the decorator would have made. Kernels outside Triton cannot be found, and are not changed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction


def _as_method(function: Any) -> Callable[..., Any]:
    """A function that binds its tensor, which an interpreted function as a class attribute does not."""

    def method(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    return method


def repair() -> None:
    interpreted: dict[int, Any] = {}

    def replacement(function: Any) -> Any:
        if id(function) not in interpreted:
            interpreted[id(function)] = InterpretedFunction(function.fn)
        return interpreted[id(function)]

    for name, module in list(sys.modules.items()):
        if name.startswith("triton.language") and module is not None:
            for attribute, value in vars(module).copy().items():
                if isinstance(value, JITFunction):
                    setattr(module, attribute, replacement(value))
    for attribute, value in vars(tl.core.tensor).copy().items():
        if isinstance(value, JITFunction):
            setattr(tl.core.tensor, attribute, _as_method(replacement(value)))
