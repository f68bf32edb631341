"""Trace a reference forward and backward: AOTAutograd, core ATen, the min-cut partitioner.

What is kept for the backward is decided in `partition`.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._decomp import core_aten_decompositions, decomposition_table
from torch._functorch.aot_autograd import aot_function

from tigon_tools.schema.errors import JobError
from tigon_tools.trace import source
from tigon_tools.trace.modes import ScalarMustBeFixed, TracingMode
from tigon_tools.trace.operation import (
    Argument,
    Gradient,
    Output,
    Saved,
    Tangent,
    TracedOperation,
)
from tigon_tools.trace.partition import partition
from tigon_tools.trace.reference import ArgumentSpec, LoadedReference
from tigon_tools.trace.refusals import check_outputs, check_random, explained

_DECOMPOSITIONS: Any = {  # typed wider than what aot_function asks for, and fine
    **core_aten_decompositions(),
    # Whole, its result would be saved for the backward; in parts, two numbers a row are (`partition`).
    torch.ops.aten._log_softmax.default: decomposition_table[torch.ops.aten._log_softmax.default],
}


@dataclass
class _Captured:
    """What the compilers and the partitioner were handed."""

    forward: fx.GraphModule | None = None
    backward: fx.GraphModule | None = None
    in_place_line: int | None = None


@dataclass(frozen=True)
class _Result:
    """An output of the reference, as it was when traced."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    differentiable: bool


class _OutputsShareMemory(Exception):
    """AOTAutograd returns such outputs through their base, with one upstream gradient for all."""


def trace(loaded: LoadedReference) -> TracedOperation:
    """Trace; scalars that cannot stay symbolic are fixed, with a note.

    Raises:
        JobError: "untraceable" naming the line or op; "bad_reference" where the reference fails.
    """
    fixed = _type_checked(loaded)
    own_memory = False
    while True:
        try:
            return _trace(loaded, fixed, own_memory)
        except _OutputsShareMemory:
            own_memory = True
        except ScalarMustBeFixed as needed:
            new = {name: f"Python needs its value on line {needed.line}" for name in needed.names if name not in fixed}
            if not new:
                raise JobError(
                    "untraceable",
                    f"line {needed.line}: a value computed from {', '.join(needed.names)} is needed in Python.",
                    "Compute it with torch, or give it as a tensor.",
                    needed.line,
                ) from None
            fixed.update(new)


def _type_checked(loaded: LoadedReference) -> dict[str, str]:
    """Scalars whose Python type the reference asks for: a tensor in their place would take the other branch."""
    lines = source.type_checks(source.parse(loaded.reference.code, loaded.reference.origin), loaded.reference.entry)
    scalars = {s.name for s in loaded.arguments if s.kind == "scalar"}
    return {name: f"Python asks for its type on line {line}" for name, line in lines.items() if name in scalars}


def _trace(loaded: LoadedReference, fixed: dict[str, str], own_memory: bool) -> TracedOperation:
    dtype = _tracing_dtype(loaded)
    specs = loaded.arguments
    main = next((s.dtype for s in specs if s.kind != "scalar" and _floating(s)), "float32")
    kinds = {s.name: "static" if s.name in fixed else s.kind for s in specs}
    traced = [s for s in specs if kinds[s.name] != "static"]
    examples = [_example(s, dtype if s.dtype == main else None) for s in traced]
    if not any(isinstance(e, torch.Tensor) and e.requires_grad for e in examples):
        raise JobError(
            "untraceable",
            "no input is a floating tensor that requires a gradient, so there is nothing to differentiate.",
            "Give at least one floating input with requires_grad true.",
        )
    captured, outputs = _capture(
        loaded, traced, examples, {s.name: s.value for s in specs if kinds[s.name] == "static"}, own_memory
    )
    assert captured.forward is not None
    assert captured.backward is not None
    tangents = _tangent_placeholders(captured.backward)
    _check_memory(captured, len(tangents) == sum(o.differentiable for o in outputs), own_memory)
    check_random(captured.forward)
    without_effect = _without_effect(traced, captured.forward)
    if without_effect:
        fixed.update(dict.fromkeys(without_effect, "forward does not read it, only the constructor does"))
        return _trace(loaded, fixed, own_memory)
    return _operation(loaded, specs, kinds, traced, captured, outputs, dtype, main, fixed)


def _floating(spec: ArgumentSpec) -> bool:
    return spec.kind in ("tensor", "parameter", "buffer") and getattr(torch, spec.dtype).is_floating_point


def _tracing_dtype(loaded: LoadedReference) -> torch.dtype:
    """A 16-bit dtype that the code does not name: a cast to it then follows the input's dtype."""
    tree = source.parse(loaded.reference.code, loaded.reference.origin)
    whole_module = loaded.reference.module is not None
    if not whole_module and source.mentions_dtype(tree, "bfloat16"):
        return torch.float16
    return torch.bfloat16


def _example(spec: ArgumentSpec, dtype: torch.dtype | None) -> torch.Tensor:
    if spec.kind == "scalar":
        return torch.tensor(spec.value, dtype=torch.int64 if spec.dtype == "int" else torch.float64)
    return spec.tensor(dtype, torch.Generator().manual_seed(0))


def _capture(
    loaded: LoadedReference,
    traced: Sequence[ArgumentSpec],
    examples: list[torch.Tensor],
    statics: Mapping[str, Any],
    own_memory: bool,
) -> tuple[_Captured, list[_Result]]:
    captured = _Captured()
    outputs: list[_Result] = []

    def function(*values: torch.Tensor) -> Any:
        scalars = {s.name: v for s, v in zip(traced, values, strict=True) if s.kind == "scalar"}
        named = {**statics, **{s.name: v for s, v in zip(traced, values, strict=True)}}
        with TracingMode(scalars, loaded.filename) as mode:
            results = loaded.call(named)
        captured.in_place_line = mode.in_place_line
        check_outputs(results, values)
        outputs[:] = [_Result(tuple(r.shape), r.dtype, r.requires_grad) for r in results]
        return tuple(r.clone() for r in results) if own_memory else results

    def divide(joint: fx.GraphModule, inputs: Any, *, num_fwd_outputs: int, **kwargs: Any) -> Any:
        _check_memory(captured, num_fwd_outputs == len(outputs), own_memory)
        return partition(joint, inputs, num_fwd_outputs=num_fwd_outputs, **kwargs)

    def keep(name: str) -> Any:
        def compiler(module: fx.GraphModule, _: Any) -> Any:
            setattr(captured, name, module)
            return module

        return compiler

    compiled = aot_function(
        function,
        keep("forward"),
        keep("backward"),
        partition_fn=divide,
        decompositions=_DECOMPOSITIONS,
    )
    _run(compiled, examples, loaded)
    return captured, outputs


def _run(compiled: Any, examples: list[torch.Tensor], loaded: LoadedReference) -> None:
    """Compile both graphs; the backward is compiled when it is first asked for."""
    logging.getLogger("torch").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = compiled(*examples)
            differentiable = [r for r in results if r.requires_grad]
            if not differentiable:
                raise JobError(
                    "untraceable",
                    "no output depends on an input in a differentiable way.",
                    "A kernel needs a gradient: return what is computed from a floating input, without detach().",
                )
            torch.autograd.backward(differentiable, [torch.ones_like(r) for r in differentiable])
    except (JobError, ScalarMustBeFixed, _OutputsShareMemory):
        raise
    except Exception as problem:
        raise explained(problem, loaded) from None


def _check_memory(captured: _Captured, one_each: bool, own_memory: bool) -> None:
    """Every output has to be a value of its own, and nothing else may be returned.

    Raises:
        _OutputsShareMemory: tracing again with outputs of their own may do.
        JobError: "untraceable" where an input is changed in place.
    """
    if one_each:
        return
    if not own_memory:
        raise _OutputsShareMemory
    line = captured.in_place_line
    where = f"line {line} of the reference" if line else "the reference"
    raise JobError(
        "untraceable",
        f"{where} changes an input, a parameter or a buffer in place.",
        "Compute a new tensor instead (`x * 2`, not `x.mul_(2)`); put modules that keep statistics in eval().",
        line,
    )


def _without_effect(traced: Sequence[ArgumentSpec], forward: fx.GraphModule) -> list[str]:
    """Settings of a module's constructor that no value depends on: what was made from them stays as it was."""
    placeholders = forward.graph.find_nodes(op="placeholder")
    return [s.name for s, p in zip(traced, placeholders, strict=True) if s.attribute and not p.users]


def _tangent_placeholders(backward: fx.GraphModule) -> list[fx.Node]:
    """In the order of the differentiable outputs; AOTAutograd numbers these, not all outputs."""
    return [n for n in backward.graph.find_nodes(op="placeholder") if n.name.startswith("tangents_")]


def _operation(
    loaded: LoadedReference,
    specs: Sequence[ArgumentSpec],
    kinds: Mapping[str, str],
    traced: Sequence[ArgumentSpec],
    captured: _Captured,
    results: Sequence[_Result],
    dtype: torch.dtype,
    main: str,
    fixed: Mapping[str, str],
) -> TracedOperation:
    forward, backward = captured.forward, captured.backward
    assert forward is not None
    assert backward is not None
    placeholders = [n for n in forward.graph.nodes if n.op == "placeholder"]
    by_spec = {s.name: p for s, p in zip(traced, placeholders, strict=True)}
    arguments = tuple(_argument(s, kinds[s.name], by_spec.get(s.name), main) for s in specs)
    returned = list(forward.graph.find_nodes(op="output")[0].args[0])
    outputs = _outputs(loaded, returned[: len(results)], results, dtype, arguments)
    saved = _saved(returned[len(results) :], backward, arguments, outputs)
    differentiable = [o for o in outputs if o.differentiable]
    tangents = tuple(
        Tangent(output, placeholder)
        for output, placeholder in zip(differentiable, _tangent_placeholders(backward), strict=True)
    )
    gradients = _gradients(backward, arguments)
    shapes = [a.shape for a in arguments if a.shape is not None] + [o.shape for o in outputs]
    try:
        space = tuple(torch.broadcast_shapes(*shapes))  # type: ignore[no-untyped-call]
    except RuntimeError:
        space = max(shapes, key=len)
    notes = list(loaded.notes)
    for name, reason in fixed.items():
        value = next(s.value for s in specs if s.name == name)
        notes.append(f"{name} is fixed at {value!r}: {reason}.")
    return TracedOperation(
        forward, backward, arguments, outputs, saved, tangents, gradients, dtype, space,
        loaded.module is not None, loaded.reference.code, loaded.reference.entry, tuple(notes),
    )  # fmt: skip


def _argument(spec: ArgumentSpec, kind: str, placeholder: fx.Node | None, main: str) -> Argument:
    if kind in ("scalar", "static"):
        dtype = spec.dtype if kind == "scalar" else "static"
        return Argument(
            spec.name, spec.name, kind, placeholder, None, dtype, False,
            spec.default if spec.default is not None else (spec.value if kind == "static" else None),
            spec.required, spec.annotation,
        )  # fmt: skip
    dtype = "input" if spec.dtype == main else spec.dtype
    return Argument(
        spec.name,
        spec.name,
        kind,
        placeholder,
        spec.shape,
        dtype,
        spec.requires_grad,
        annotation=spec.annotation,
    )


def _outputs(
    loaded: LoadedReference,
    nodes: Sequence[Any],
    results: Sequence[_Result],
    dtype: torch.dtype,
    arguments: Sequence[Argument],
) -> tuple[Output, ...]:
    names = _output_names(loaded, len(results), {a.name for a in arguments})
    outputs = []
    for node, result, name in zip(nodes, results, names, strict=True):
        label = "input" if result.dtype == dtype else str(result.dtype)[6:]
        outputs.append(Output(name, name, node, result.shape, label, result.differentiable))
    return tuple(outputs)


def _output_names(loaded: LoadedReference, count: int, taken: set[str]) -> list[str]:
    """The reference's own names for what it returns; `Y` for an expression."""
    returned = loaded.returned_names if len(loaded.returned_names) == count else (None,) * count
    usable = [n if n is not None and n not in taken and returned.count(n) == 1 else None for n in returned]
    known = {name.lower() for name in (*taken, *usable) if name is not None}
    only = usable.count(None) == 1 and "y" not in known
    return [n or ("Y" if only else f"Y{position + 1}") for position, n in enumerate(usable)]


def _saved(
    nodes: Sequence[Any], backward: fx.GraphModule, arguments: Sequence[Argument], outputs: Sequence[Output]
) -> tuple[Saved, ...]:
    placeholders = {n.name: n for n in backward.graph.nodes if n.op == "placeholder"}
    by_node = {a.placeholder: a for a in arguments if a.placeholder is not None}
    output_of = {o.node: o for o in outputs}
    saved = []
    for node in nodes:
        if not isinstance(node, fx.Node) or node.name not in placeholders:
            continue
        if node in by_node:
            argument = by_node[node]
            kind = "scalar" if argument.kind == "scalar" else "input"
            saved.append(Saved(argument.symbol, kind, node, placeholders[node.name]))
        elif node in output_of:
            saved.append(Saved(output_of[node].symbol, "output", node, placeholders[node.name]))
        else:
            saved.append(Saved(node.name, "intermediate", node, placeholders[node.name]))
    return tuple(saved)


def _gradients(backward: fx.GraphModule, arguments: Sequence[Argument]) -> tuple[Gradient, ...]:
    returned = backward.graph.find_nodes(op="output")[0].args[0]
    with_placeholder = [a for a in arguments if a.placeholder is not None]
    return tuple(
        Gradient(argument, node)
        for argument, node in zip(with_placeholder, returned, strict=True)
        if isinstance(node, fx.Node) and argument.requires_grad
    )
