"""The ops file of an operation whose kernels are left to the assistant: complete but for two bodies.

What the traced graphs decide is written: signatures, saved tensors, the autograd.Function. What is not raises a
sentence that says what it has to compute, and which of Liger's kernels to read for it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

from tigon_tools.codegen.free_names import names_of_the_file, with_free_names
from tigon_tools.codegen.plan import Argument
from tigon_tools.codegen.planning import arguments_of
from tigon_tools.schema.reference import Facts
from tigon_tools.trace.operation import TracedOperation

LINE = 116
"""Characters of a line of a docstring, under Liger's 120 with its indent."""


@dataclass(frozen=True)
class UnwrittenFile:
    """source: the file's text. arguments: of the Function. unwritten: what each body has to compute, as sentences."""

    source: str
    arguments: tuple[Argument, ...]
    unwritten: tuple[str, ...]


def unwritten_file(op: TracedOperation, facts: Facts, operation_name: str, function_class_name: str) -> UnwrittenFile:
    """The file for an operation of tier 3.

    Raises:
        Unsupported: an argument's name cannot be used.
    """
    op = with_free_names(op, names_of_the_file(operation_name, function_class_name))
    arguments = arguments_of(op)
    outputs = [o.name for o in op.outputs]
    saved = _saved(op)
    tensors = [name for name, kind in saved if kind != "scalar"]
    scalars = [name for name, kind in saved if kind == "scalar"]
    kept = [name for name, kind in saved if kind == "intermediate"]
    upstream = [f"d{o.name}" for o in op.outputs if o.differentiable]
    gradients = [f"d{g.argument.name}" for g in op.gradients]
    read = f"src/liger_kernel/ops/{facts.closest_kernels[0]}.py" if facts.closest_kernels else "the kernels of its tier"
    forward = _Body(
        f"{operation_name}_forward", [a.declaration for a in arguments], [*outputs, *kept], facts.forward_formulas, read
    )
    backward = _Body(
        f"{operation_name}_backward", [*upstream, *tensors, *scalars], gradients, facts.gradient_formulas, read
    )
    parts = [
        ["import torch"],
        forward.lines(),
        backward.lines(),
        _function(op, function_class_name, operation_name, arguments, kept, tensors, scalars, upstream, gradients),
    ]
    source = "\n\n\n".join("\n".join(part) for part in parts) + "\n"
    return UnwrittenFile(source, arguments, (forward.sentence, backward.sentence))


@dataclass(frozen=True)
class _Body:
    """A launcher without its body."""

    name: str
    parameters: list[str]
    results: list[str]
    formulas: Mapping[str, str]
    read: str

    @property
    def sentence(self) -> str:
        """What is still to be written."""
        maths = "; ".join(f"{symbol} = {text}" for symbol, text in self.formulas.items())
        return f"{self.name} is not written yet. It has to return {', '.join(self.results)}: {maths}. Read {self.read}."

    def lines(self) -> list[str]:
        """The function: its maths as a docstring, and the sentence."""
        maths = [f"{symbol} = {text}" for symbol, text in self.formulas.items()]
        wrapped = [line for text in maths for line in textwrap.wrap(text, LINE - 4, subsequent_indent="    ")]
        return [
            f"def {self.name}({', '.join(self.parameters)}):",
            '    """',
            *(f"    {line}" for line in wrapped),
            '    """',
            "    raise NotImplementedError(",
            *(f"        {part!r}" for part in _pieces(self.sentence)),
            "    )",
        ]


def _pieces(sentence: str) -> list[str]:
    """As string literals of a line each; the spaces stay."""
    words = textwrap.wrap(sentence, LINE - 12)
    return [word + " " for word in words[:-1]] + words[-1:]


def _saved(op: TracedOperation) -> list[tuple[str, str]]:
    """What goes to the backward: by the arguments', the outputs', or the value's own name."""
    by_placeholder = {a.placeholder: a.name for a in op.arguments if a.placeholder is not None}
    by_output = {o.node: o.name for o in op.outputs}
    taken = {*by_placeholder.values(), *by_output.values()}
    saved = []
    for entry in op.saved:
        name = by_placeholder.get(entry.forward) or by_output.get(entry.forward)
        if name is None:
            name = entry.symbol.lower()
            name = f"{name}_saved" if name in taken else name
            taken.add(name)
        saved.append((name, entry.kind))
    return saved


def _function(
    op: TracedOperation,
    function_class_name: str,
    operation_name: str,
    arguments: tuple[Argument, ...],
    kept: list[str],
    tensors: list[str],
    scalars: list[str],
    upstream: list[str],
    gradients: list[str],
) -> list[str]:
    outputs = [o.name for o in op.outputs]
    constant = [o.name for o in op.outputs if not o.differentiable]
    every = [f"d{o.name}" for o in op.outputs]
    returned = [f"d{a.name}" if f"d{a.name}" in gradients else "None" for a in arguments]
    unpack = f"({tensors[0]},)" if len(tensors) == 1 else ", ".join(tensors)
    return [
        f"class {function_class_name}(torch.autograd.Function):",
        "    @staticmethod",
        f"    def forward(ctx, {', '.join(a.declaration for a in arguments)}):",
        f"        {', '.join([*outputs, *kept])} = {operation_name}_forward({', '.join(a.name for a in arguments)})",
        *([f"        ctx.save_for_backward({', '.join(tensors)})"] if tensors else []),
        *(f"        ctx.{name} = {name}" for name in scalars),
        *([f"        ctx.mark_non_differentiable({', '.join(constant)})"] if constant else []),
        f"        return {', '.join(outputs)}",
        "",
        "    @staticmethod",
        f"    def backward(ctx, {', '.join(every)}):",
        *([f"        {unpack} = ctx.saved_tensors"] if tensors else []),
        f"        {', '.join(gradients)} = {operation_name}_backward("
        f"{', '.join([*upstream, *tensors, *(f'ctx.{name}' for name in scalars)])})",
        f"        return {', '.join(returned)}",
    ]
