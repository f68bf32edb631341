"""`libdevice` functions, which have no body outside the compiler.

Cause: the functions of `triton.language.extra.libdevice` are empty in Python and return None, and those of
`...extra.cuda.libdevice` ask the builder for a function of NVIDIA's library, which it refuses (all
versions). Cure: the builder computes each function of the library (`__nv_tanhf`, ...) from a table, and
both modules' functions call it with the type rules of `...cuda.libdevice`. What the table lacks is refused.

Functions imported by name before activation stay empty.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import InterpreterBuilder

from tigon_tools.interpreter.element_types import handle, numpy_type
from tigon_tools.interpreter.language import settle_builtins
from tigon_tools.interpreter.libdevice_table import function_of
from tigon_tools.interpreter.refusal import UnsupportedOnCPU
from tigon_tools.interpreter.replacing import replace

_STUBS = "triton.language.extra.libdevice"
_CUDA = "triton.language.extra.cuda.libdevice"


def external_function(
    builder: Any, library: str, path: str, symbol: str, arguments: list[Any], result: Any, pure: bool
) -> Any:
    """Call a function of NVIDIA's device library, by its symbol.

    Raises:
        UnsupportedOnCPU: the table has no such function.
    """
    function = function_of(symbol)
    if function is None:
        raise UnsupportedOnCPU(
            f"{symbol} is a function of a GPU's own library that Tigon has no CPU form of. "
            "Write it with tl operations, or test this kernel on a GPU."
        )
    values = np.broadcast_arrays(*(one.data for one in arguments))
    computed = np.asarray(function(*values))
    held = numpy_type(result)
    if computed.dtype.kind == "u" and held.kind == "i":
        computed = computed.view(np.dtype(f"int{computed.dtype.itemsize * 8}"))
    return handle(computed.astype(held, copy=False), result.scalar)


def _refused(name: str) -> Callable[..., NoReturn]:
    def refused(*arguments: Any, **named: Any) -> NoReturn:
        raise UnsupportedOnCPU(
            f"libdevice.{name} is not in NVIDIA's device library, so its result on a GPU is not known here. "
            "Write it with tl operations, or test this kernel on a GPU."
        )

    return refused


def repair() -> None:
    replace(InterpreterBuilder, "create_extern_elementwise", external_function)
    cuda = importlib.import_module(_CUDA)
    settle_builtins(cuda)
    # Clocks and registers are inline assembly: refused as such, instead of with an unrelated error. Triton loads
    # the package twice, and `from triton.language.extra import cuda` gives the one that is not in sys.modules.
    package = importlib.import_module("triton.language.extra.cuda")
    for module in (package, getattr(tl.extra, "cuda", package), getattr(package, "utils", package)):
        settle_builtins(module)
    _fill(importlib.import_module(_STUBS), cuda)


def _fill(stubs: ModuleType, cuda: ModuleType) -> None:
    for name, stub in vars(stubs).copy().items():
        if callable(stub) and getattr(stub, "__module__", None) == stubs.__name__:
            setattr(stubs, name, getattr(cuda, name, None) or _refused(name))
