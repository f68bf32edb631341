"""Operations that only a GPU can do, refused with a sentence; and printing, which showed bit patterns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import triton.language as tl
from triton.language.semantic import TritonSemantic
from triton.runtime.interpreter import InterpreterBuilder

from tigon_tools.interpreter.element_types import decode, handle, is_pattern
from tigon_tools.interpreter.refusal import UnsupportedOnCPU
from tigon_tools.interpreter.replacing import replace

_BY_BUILDER = {
    "create_inline_asm": "tl.inline_asm_elementwise runs PTX, which a CPU cannot. "
    "Write the operation in Triton, or test this kernel on a GPU.",
}
_BY_SEMANTIC = {
    "dot_scaled": "tl.dot_scaled multiplies microscaled formats in hardware that a CPU does not imitate. "
    "Convert the operands and use tl.dot, or test this kernel on a GPU.",
}
"""Method, and the sentence that it ends in."""


def _refuse(sentence: str) -> Callable[..., NoReturn]:
    def refused(builder: Any, *arguments: Any, **named: Any) -> NoReturn:
        raise UnsupportedOnCPU(sentence)

    return refused


def repair() -> None:
    for name, sentence in _BY_BUILDER.items():
        replace(InterpreterBuilder, name, _refuse(sentence))
    for name, sentence in _BY_SEMANTIC.items():
        replace(TritonSemantic, name, _refuse(sentence))

    original: Any = None

    def show(builder: Any, prefix: Any, hexadecimal: Any, values: Any, signed: Any) -> None:
        readable = [
            handle(decode(one.data, one.dtype.scalar), tl.float32) if is_pattern(one.dtype.scalar) else one
            for one in values
        ]
        original(builder, prefix, hexadecimal, readable, signed)

    original = replace(InterpreterBuilder, "create_print", show)
