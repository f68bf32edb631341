"""The interpreter's form of `triton.language`, put in place once.

Cause: the interpreter exchanges about 300 attributes of `triton.language` at every launch and, without
undoing it, at every call of a device function such as `tl.sum` (all versions). That is half of the time of
a program, and threads that launch at once undo each other's exchange. Cure: the exchange is made when the
interpreter is activated and stays, so names imported from `triton.language` later are the exchanged ones.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import triton.language as tl
from triton.runtime import interpreter

from tigon_tools.interpreter.replacing import replace, require


class _Settled:
    """Stands for the scope of an exchange that is not undone."""

    def restore(self) -> None:
        """Nothing to do: see the module's docstring."""


def with_semantic(builtin: Any) -> Any:
    """A builtin of Triton's that can be called from plain Python: the interpreter's semantic is filled in."""

    def call(*arguments: Any, **named: Any) -> Any:
        named["_semantic"] = interpreter.interpreter_semantic
        return builtin(*arguments, **named)

    call.__name__ = getattr(builtin, "__name__", "builtin")
    return call


def settle_builtins(module: Any) -> None:
    """Make the builtins of a module of `triton.language` callable in the interpreter."""
    for name, member in vars(module).copy().items():
        if tl.core.is_builtin(member):
            setattr(module, name, with_semantic(member))


def repair() -> None:
    require(interpreter, "_patch_lang")(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    replace(interpreter, "_patch_lang", lambda function: _Settled())
    # Without overflow checks, which the compiler makes in debug mode only, integers wrap as on a GPU.
    options = interpreter.InterpreterOptions(sanitize_overflow=False)
    interpreter.interpreter_builder.options = options
