"""Switching the repaired interpreter on: once a process, before kernels are defined.

Repairs are applied to Triton's modules for the rest of the process. A process that has them is an
interpreter process: nothing in it is compiled for a GPU.
"""

from __future__ import annotations

import importlib
import os
import threading

from tigon_tools.interpreter.refusal import UnknownTriton

supported_versions = ("3.6", "3.7", "3.8", "3.9")
"""Minor versions of Triton that the repairs are tested with. Older ones are refused, newer ones tried."""

_REPAIRS = (
    "element_types",
    "shapes",
    "jit_functions",
    "language",
    "scalars",
    "arithmetic",
    "casts",
    "contractions",
    "reductions",
    "histograms",
    "atomics",
    "libdevice",
    "refused_operations",
    "syntax",
    "launches",
    "autotuning",
    "machine",
)
"""Modules with a `repair()`, one cause each. Triton's own jit functions and language come before what uses them."""

_lock = threading.Lock()
_active = False


def is_active() -> bool:
    """Whether `activate()` has succeeded in this process."""
    return _active


def activate() -> None:
    """Set TRITON_INTERPRET=1 and repair Triton's interpreter. A second call does nothing.

    Call it before modules with `@triton.jit` kernels are imported: a kernel that was defined without
    TRITON_INTERPRET stays one for the compiler. Triton itself may be imported already, with or without
    TRITON_INTERPRET: its own jit functions (`tl.sum`, `tl.cdiv`, ...) are changed over.

    Raises:
        UnknownTriton: Triton is older than 3.6, or lacks something that has to be repaired.
        ImportError: torch, numpy or Triton is missing.
    """
    global _active
    with _lock:
        if _active:
            return
        os.environ["TRITON_INTERPRET"] = "1"
        _repair()
        _active = True


def _repair() -> None:
    import triton

    version = tuple(int(part) for part in triton.__version__.split(".")[:2])
    oldest = tuple(int(part) for part in supported_versions[0].split("."))
    if version < oldest:
        raise UnknownTriton(
            f"Triton {triton.__version__} is older than {supported_versions[0]}, the first whose interpreter Tigon "
            "can repair. Install a newer Triton, or run on a GPU."
        )
    for name in _REPAIRS:
        importlib.import_module(f"tigon_tools.interpreter.{name}").repair()
