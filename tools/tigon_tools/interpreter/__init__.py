"""Triton's interpreter, repaired: kernels mean on a CPU what they mean on a GPU, or are refused.

`activate()` has to run before modules with `@triton.jit` kernels are imported. Importing this package
imports neither torch nor Triton.
"""

from tigon_tools.interpreter.activation import activate, is_active, supported_versions
from tigon_tools.interpreter.refusal import UnknownTriton, UnsupportedOnCPU

__all__ = ["UnknownTriton", "UnsupportedOnCPU", "activate", "is_active", "supported_versions"]
