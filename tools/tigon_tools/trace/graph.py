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
from torch._decomp import core_aten_decompositions
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
from tigon_tools.trace.reference import ArgumentSpec, LoadedReference, line_of

_DECOMPOSITIONS: Any = core_aten_decompositions()  # typed wider than what aot_function asks for, and fine


@dataclass
class _Captured:
    """What the compilers and the partitioner were handed."""

    forward: fx.GraphModule | None = None
    backward: fx.GraphModule | None = None


def trace(loaded: LoadedReference) -> TracedOperation:
    """Trace; scalars that cannot stay symbolic are fixed, with a note.

    Raises:
        JobError: "untraceable" naming the line or op; "bad_reference" where the reference fails.
    """
    fixed: dict[str, int | None] = {}
    while True:
        try:
            return _trace(loaded, fixed)
        except ScalarMustBeFixed as needed:
            new = {name: needed.line for name in needed.names if name not in fixed}
            if not new:
                raise JobError(
                    "untraceable",
                    f"line {needed.line}: a value computed from {', '.join(needed.names)} is needed in Python.",
                    "Compute it with torch, or give it as a tensor.",
                    needed.line,
                ) from None
            fixed.update(new)


def _trace(loaded: LoadedReference, fixed: Mapping[str, int | None]) -> TracedOperation:
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
        loaded, traced, examples, {s.name: s.value for s in specs if kinds[s.name] == "static"}
    )
    assert captured.forward is not None
    assert captured.backward is not None
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
) -> tuple[_Captured, list[Any]]:
    captured = _Captured()
    outputs: list[Any] = []

    def function(*values: torch.Tensor) -> Any:
        scalars = {s.name: v for s, v in zip(traced, values, strict=True) if s.kind == "scalar"}
        named = {**statics, **{s.name: v for s, v in zip(traced, values, strict=True)}}
        with TracingMode(scalars, loaded.filename):
            results = loaded.call(named)
        _check_outputs(results, values, loaded)
        outputs[:] = [(tuple(r.shape), r.dtype) for r in results]
        return results

    def keep(name: str) -> Any:
        def compiler(module: fx.GraphModule, _: Any) -> Any:
            setattr(captured, name, module)
            return module

        return compiler

    compiled = aot_function(
        function,
        keep("forward"),
        keep("backward"),
        partition_fn=partition,
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
            if any(r.requires_grad for r in results[len(differentiable) :]):
                # AOTAutograd numbers tangents by differentiable outputs alone; mixed up, a gradient is lost.
                raise JobError(
                    "untraceable",
                    "an output without a gradient comes before one that has one.",
                    "Return the differentiable outputs first.",
                )
            torch.autograd.backward(differentiable, [torch.ones_like(r) for r in differentiable])
    except (JobError, ScalarMustBeFixed):
        raise
    except Exception as problem:
        raise _explained(problem, loaded) from None


def _explained(problem: Exception, loaded: LoadedReference) -> JobError | ScalarMustBeFixed:
    cause: BaseException | None = problem
    while cause is not None:
        if isinstance(cause, (JobError, ScalarMustBeFixed)):
            return cause
        cause = cause.__cause__ or cause.__context__
    line = line_of(problem, loaded.filename)
    text = str(problem).strip().splitlines()[0] if str(problem).strip() else ""
    where = f"line {line} of the reference" if line else "the reference"
    data_dependent = type(problem).__name__ in ("DataDependentOutputException", "GuardOnDataDependentSymNode")
    if data_dependent or "DynamicOutputShape" in type(problem).__name__:
        return JobError(
            "untraceable",
            f"{where} needs a tensor's value while tracing ({text}): data-dependent control flow or shapes.",
            "Write it with torch.where or masks.",
            line,
        )
    return JobError(
        "untraceable",
        f"{where} fails: {type(problem).__name__}: {text}",
        "Correct the reference, or the inputs it is traced with (shapes, dtypes).",
        line,
    )


def _check_outputs(results: tuple[Any, ...], values: Sequence[torch.Tensor], loaded: LoadedReference) -> None:
    for position, result in enumerate(results):
        if not isinstance(result, torch.Tensor):
            raise JobError(
                "untraceable",
                f"output {position} is a {type(result).__name__}, not a tensor.",
                "Return tensors only.",
            )
        if any(result is value for value in values):
            raise JobError(
                "untraceable",
                f"output {position} is an input, unchanged.",
                "Return only what is computed; a caller has its inputs already.",
            )


def _operation(
    loaded: LoadedReference,
    specs: Sequence[ArgumentSpec],
    kinds: Mapping[str, str],
    traced: Sequence[ArgumentSpec],
    captured: _Captured,
    results: Sequence[tuple[tuple[int, ...], torch.dtype]],
    dtype: torch.dtype,
    main: str,
    fixed: Mapping[str, int | None],
) -> TracedOperation:
    forward, backward = captured.forward, captured.backward
    assert forward is not None
    assert backward is not None
    placeholders = [n for n in forward.graph.nodes if n.op == "placeholder"]
    by_spec = {s.name: p for s, p in zip(traced, placeholders, strict=True)}
    arguments = tuple(_argument(s, kinds[s.name], by_spec.get(s.name), main) for s in specs)
    returned = list(forward.graph.find_nodes(op="output")[0].args[0])
    outputs = _outputs(loaded, returned[: len(results)], results, dtype, backward, arguments)
    saved = _saved(returned[len(results) :], backward, arguments, outputs)
    tangents = _tangents(backward, saved, outputs)
    gradients = _gradients(backward, arguments)
    shapes = [a.shape for a in arguments if a.shape is not None] + [o.shape for o in outputs]
    try:
        space = tuple(torch.broadcast_shapes(*shapes))  # type: ignore[no-untyped-call]
    except RuntimeError:
        space = max(shapes, key=len)
    notes = list(loaded.notes)
    for name, line in fixed.items():
        value = next(s.value for s in specs if s.name == name)
        notes.append(f"{name} is fixed at {value!r}: Python needs its value on line {line}.")
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
    results: Sequence[tuple[tuple[int, ...], torch.dtype]],
    dtype: torch.dtype,
    backward: fx.GraphModule,
    arguments: Sequence[Argument],
) -> tuple[Output, ...]:
    names = _output_names(loaded, len(results), {a.name for a in arguments})
    tangents = [n.name for n in backward.graph.nodes if n.op == "placeholder" and n.name.startswith("tangents")]
    outputs = []
    for position, (node, (shape, own), name) in enumerate(zip(nodes, results, names, strict=True)):
        label = "input" if own == dtype else str(own)[6:]
        differentiable = own.is_floating_point and f"tangents_{position + 1}" in tangents
        outputs.append(Output(name, name, node, shape, label, differentiable))
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


def _tangents(backward: fx.GraphModule, saved: Sequence[Saved], outputs: Sequence[Output]) -> tuple[Tangent, ...]:
    known = {s.backward for s in saved}
    tangents = []
    for node in backward.graph.nodes:
        if node.op == "placeholder" and node not in known:
            position = int(node.name.rsplit("_", 1)[1]) - 1
            tangents.append(Tangent(outputs[position], node))
    return tuple(tangents)


def _gradients(backward: fx.GraphModule, arguments: Sequence[Argument]) -> tuple[Gradient, ...]:
    returned = backward.graph.find_nodes(op="output")[0].args[0]
    with_placeholder = [a for a in arguments if a.placeholder is not None]
    return tuple(
        Gradient(argument, node)
        for argument, node in zip(with_placeholder, returned, strict=True)
        if isinstance(node, fx.Node) and argument.requires_grad
    )
