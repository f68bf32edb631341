"""Launches: what happens between `kernel[grid](...)` and its programs, and calls of device functions.

Causes and cures, at the three methods that run kernels (all versions):

- The running program's index is an attribute of one builder, so two threads that launch at the same time
  mix up their programs. It is kept for each thread.
- Every storage is copied onto itself after every launch. CPU tensors are used as they are.
- Overflow to infinity, NaN and division by zero print numpy warnings, or raise where warnings are errors.
  They are values on a GPU, and are silent here.
- Misspelt keyword arguments were dropped without a word, and grids that no GPU accepts were run.
- The grid function was given tensors; it gets the caller's arguments, as from the compiler's launcher.
- A refusal (`UnsupportedOnCPU`) arrives as such, not inside the interpreter's own error.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import itertools
import threading
from typing import Any

import numpy as np
import torch
import triton
from triton.runtime import interpreter
from triton.runtime.errors import InterpreterError
from triton.runtime.interpreter import GridExecutor, InterpretedFunction, InterpreterBuilder

from tigon_tools.interpreter.refusal import UnsupportedOnCPU
from tigon_tools.interpreter.replacing import replace, require

LARGEST_GRID = (2**31 - 1, 65535, 65535)
"""Programs along each axis that CUDA accepts (CUDA C++ Programming Guide, compute capabilities)."""


class _PerThread:
    """An attribute whose value each thread has for itself."""

    def __init__(self) -> None:
        self._values = threading.local()

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return getattr(self._values, "value", None)

    def __set__(self, owner: Any, value: Any) -> None:
        self._values.value = value


@functools.cache
def _launch_options() -> frozenset[str]:
    """Keyword arguments of a launch that are for a compiler, of any backend this Triton has, not for the kernel."""
    names = {"num_warps", "num_stages", "num_ctas", "maxnreg", "debug", "grf_mode", "ir_override"}
    for backend, options in (("nvidia", "CUDAOptions"), ("amd", "HIPOptions")):
        try:
            module = importlib.import_module(f"triton.backends.{backend}.compiler")
            names |= {field.name for field in dataclasses.fields(getattr(module, options))}
        except (ImportError, AttributeError):
            continue
    return frozenset(names)


@functools.cache
def _parameters(function: Any) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters)


def launch(executor: Any, *arguments: Any, **named: Any) -> None:
    """Run all programs of a grid, one after the other.

    Raises:
        KeyError: a keyword argument that is neither the kernel's nor a launch option.
        ValueError: a grid that CUDA does not accept.
        UnsupportedOnCPU: the kernel does something that cannot be right here.
        InterpreterError: anything else that fails in the kernel.
    """
    known = _parameters(executor.fn)
    for name in named.keys() - known - _launch_options():
        raise KeyError(f"Keyword argument {name} was specified but is not one of the kernel's or a launch option.")
    named = {name: value for name, value in named.items() if name in known}
    on_cpu = all(_stays(value) for value in (*arguments, *named.values()))
    host, host_named = (arguments, named) if on_cpu else executor._init_args_hst(arguments, named)
    for hook in executor.pre_run_hooks:
        hook(*host, **host_named)
    with np.errstate(all="ignore"):
        _run_programs(executor, inspect.getcallargs(executor.fn, *host, **host_named))
    if not on_cpu:
        executor._restore_args_dev(arguments, host, named, host_named)


def _stays(value: Any) -> bool:
    """Whether an argument can be given to the kernel as it is: a CPU tensor, or nothing that holds memory."""
    if isinstance(value, tuple):
        return all(_stays(one) for one in value)
    if isinstance(value, torch.Tensor):
        return value.device.type == "cpu"
    return not (hasattr(value, "data_ptr") or hasattr(value, "base"))


def _run_programs(executor: Any, bound: dict[str, Any]) -> None:
    convert: Any = interpreter._implicit_cvt
    grid = executor.grid(bound) if callable(executor.grid) else executor.grid
    sizes = _checked_grid(grid)
    values = {name: value if name in executor.constexprs else convert(value) for name, value in bound.items()}
    builder: Any = interpreter.interpreter_builder
    outer = builder.grid_dim, builder.grid_idx
    builder.set_grid_dim(*sizes)
    try:
        for index in itertools.product(*map(range, sizes)):
            builder.set_grid_idx(*index)
            executor.fn(**values)
    except Exception as problem:
        _reraise(problem)
    finally:
        builder.grid_dim, builder.grid_idx = outer


def _checked_grid(grid: Any) -> tuple[int, int, int]:
    sizes = [int(size) for size in (grid if isinstance(grid, tuple | list) else (grid,))]
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"A grid has one to three axes, not {len(sizes)}.")
    sizes += [1] * (3 - len(sizes))
    for axis, (size, largest) in enumerate(zip(sizes, LARGEST_GRID, strict=True)):
        if not 0 <= size <= largest:
            raise ValueError(f"Axis {axis} of the grid has {size} programs; CUDA accepts 0 to {largest} there.")
    return sizes[0], sizes[1], sizes[2]


def call_device_function(function: Any, *arguments: Any, **named: Any) -> Any:
    """A jit function called from a kernel; what fails in it is wrapped once, by the launch."""
    return function.rewrite()(*arguments, **named)


def _reraise(problem: Exception) -> None:
    """As it is if it is a refusal or already the interpreter's, else as the interpreter's error."""
    if triton.knobs.compilation.front_end_debugging or isinstance(problem, UnsupportedOnCPU | InterpreterError):
        raise problem
    raise InterpreterError(repr(problem)) from problem


def repair() -> None:
    require(interpreter, "_implicit_cvt")
    for name in ("_init_args_hst", "_restore_args_dev"):
        require(GridExecutor, name)
    for name in ("set_grid_dim", "set_grid_idx"):
        require(InterpreterBuilder, name)
    for name in ("grid_dim", "grid_idx"):
        setattr(InterpreterBuilder, name, _PerThread())
    replace(GridExecutor, "__call__", launch)
    replace(InterpretedFunction, "__call__", call_device_function)
