"""From a traced operation to the plan of its file: both graphs lowered, arguments put in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import fx

from tigon_tools.codegen.free_names import derived, names_of_the_file, with_free_names
from tigon_tools.codegen.kernel import loads_of
from tigon_tools.codegen.lowering import Lowering, Traced, moves_elements
from tigon_tools.codegen.naming import Namer
from tigon_tools.codegen.plan import Argument, Gradient, KernelPlan, Narrow, OpsPlan, Scalar, Tensor
from tigon_tools.codegen.sigmoids import with_sigmoids
from tigon_tools.codegen.unsupported import Unsupported
from tigon_tools.codegen.values import FloatTypes, Kind, Value, reachable
from tigon_tools.trace.operation import Argument as TracedArgument
from tigon_tools.trace.operation import Output, Saved, TracedOperation
from tigon_tools.trace.tier import is_reduction


@dataclass(frozen=True)
class Planned:
    """A plan, and what the kernels are named with."""

    ops: OpsPlan
    hints: Mapping[Value, str]
    gradient_of: Mapping[Value, Value]


def plan_file(
    op: TracedOperation,
    operation_name: str,
    function_class_name: str,
    local_names: Mapping[str, str] | None = None,
) -> Planned:
    """The plan of the file for `op`. local_names: what the reference calls the forward graph's nodes.

    Raises:
        Unsupported: one sentence that says what cannot be generated.
    """
    planner, rows = Planner, needs_rows(op)
    if rows:
        from tigon_tools.codegen.row_planning import RowPlanner  # it builds on this module

        planner = RowPlanner
    own = names_of_the_file(operation_name, function_class_name, rows)
    return planner(with_free_names(op, own), own, operation_name, function_class_name, local_names or {}).plan()


def needs_rows(op: TracedOperation) -> bool:
    """Something is reduced, in the forward or for the gradient of what is broadcast, or computed once a row."""
    nodes = [node for graph in (op.forward.graph, op.backward.graph) for node in graph.nodes]
    return any(is_reduction(node) or moves_elements(node) for node in nodes)


def _broadcasts(shape: tuple[int, ...], space: tuple[int, ...]) -> bool:
    behind = zip(reversed(shape), reversed(space), strict=False)
    return len(shape) <= len(space) and all(size in (1, whole) for size, whole in behind)


class Planner:
    """Plans the file of a point-wise operation; `RowPlanner` that of one with rows."""

    def __init__(
        self,
        op: TracedOperation,
        own_names: frozenset[str],
        operation_name: str,
        function_class_name: str,
        local_names: Mapping[str, str],
    ) -> None:
        self._op = op
        self._own_names = own_names
        self._operation_name = operation_name
        self._function_class_name = function_class_name
        self._lowering = self._new_lowering(local_names)
        self._tensors: dict[str, Tensor] = {}
        self._scalars = {a.name: _scalar(a) for a in op.scalars}

    def _new_lowering(self, local_names: Mapping[str, str]) -> Lowering:
        return Lowering(self._op.input_dtype, local_names)

    def plan(self) -> Planned:
        forward_values = self._lower_forward()
        given = [*(a.name for a in self._op.arguments), *(o.name for o in self._op.outputs)]
        self._kept = Namer(self._lowering.hints, {}, {*given, *derived(given), *self._own_names})
        outputs = [self._new_tensor(o.name, t) for o, t in zip(self._op.outputs, forward_values, strict=True)]
        intermediates = [
            saved
            for saved in self._op.saved
            if saved.kind == "intermediate" and not self._forward[saved.forward.name].value.is_leaf
        ]
        kept = [self._kept_tensor(self._kept_name(s), self._forward[s.forward.name]) for s in intermediates]
        stored = [*forward_values, *(self._forward[s.forward.name] for s in intermediates)]
        forward = self._kernel("forward", list(zip([*outputs, *kept], [t.value for t in stored], strict=True)))
        gradients, backward = self._plan_backward()
        ops = OpsPlan(
            operation_name=self._operation_name,
            function_class_name=self._function_class_name,
            arguments=arguments_of(self._op),
            outputs=tuple(tensor.name for tensor in outputs),
            non_differentiable=tuple(o.name for o in self._op.outputs if not o.differentiable),
            intermediates=tuple(tensor.name for tensor in kept),
            saved=self._saved_names(backward),
            upstream=self._upstream(),
            gradients=gradients,
            forward=forward,
            backward=backward,
            narrow=self._narrow(outputs, forward_values),
            shape_tensors=self._shape_tensors(),
            fixed=tuple((a.name, repr(a.default)) for a in self._op.arguments if a.kind == "static"),
        )
        return Planned(ops, self._lowering.hints, self._lowering.gradient_of)

    def _narrow(self, outputs: list[Tensor], values: list[Traced]) -> tuple[Narrow, ...]:
        """A constant has the shape of an input that the graph does not name: of each that it may be."""
        shaping = self._shape_tensors()
        whole = [self._tensors[a.name] for a in self._op.tensors if a.shape == self._op.iteration_space]
        found: dict[tuple[Tensor, ...], list[str]] = {}
        for tensor, traced in zip(outputs, values, strict=True):
            read = loads_of([traced.value])
            tensors = tuple(t for t in shaping if t.name in read)
            for group in [tensors] if tensors else [(t,) for t in whole]:
                if len(group) < len(shaping):
                    found.setdefault(group, []).append(tensor.name)
        return tuple(Narrow(tuple(names), tensors) for tensors, names in found.items())

    def _shape_tensors(self) -> tuple[Tensor, ...]:
        """Inputs that the operation's shape may come from, those included that only lend their shape.

        One that nothing reads and that fits nothing (a weight of another layer) is not among them.
        """
        read = set(loads_of([traced.value for traced in self._forward.values()]))
        space = self._op.iteration_space
        return tuple(
            self._tensors[a.name]
            for a in self._op.tensors
            if a.name in self._tensors and (a.name in read or _broadcasts(a.shape or (), space))
        )

    def _new_tensor(self, name: str, traced: Traced) -> Tensor:
        tensor = Tensor(name, traced.value.kind, traced.types, self._lowering.added_dims.get(name, ()))
        self._tensors[name] = tensor
        return tensor

    def _kept_tensor(self, name: str, traced: Traced) -> Tensor:
        """Of an intermediate that is kept for the backward."""
        return self._new_tensor(name, traced)

    def _lower_forward(self) -> list[Traced]:
        bound: dict[str, Traced] = {}
        for argument in self._op.arguments:
            if argument.placeholder is None:
                continue
            if argument.kind == "scalar":
                traced = self._lowering.bind_scalar(argument.name, self._scalars[argument.name].kind)
            else:
                traced = self._bind_argument(argument.name, argument.placeholder)
            bound[argument.placeholder.name] = traced
        self._forward = self._lowering.run(self._op.forward.graph, bound)
        for argument in self._op.tensors:
            if argument.placeholder is not None:
                self._new_tensor(argument.name, bound[argument.placeholder.name])
        self._check_output_shapes()
        for output in self._op.outputs:
            value = self._forward[output.node.name].value
            if not value.is_leaf:
                self._lowering.hints[value] = output.name.lower()
        self._drop_doubled_hints()
        return [self._output(output) for output in self._op.outputs]

    def _output(self, output: Output) -> Traced:
        """With a dtype for a constant, too: it follows an input that the graph does not name."""
        traced = self._forward[output.node.name]
        if output.dtype == "float64":
            raise Unsupported(f"output `{output.name}` is float64, and generated kernels compute in float32.")
        if traced.types:
            return traced
        followed = [a.name for a in self._op.tensors if a.dtype == "input"]
        if len(followed) != 1:
            raise Unsupported(f"output `{output.name}` is a constant: which input's dtype it follows is not known.")
        return replace(traced, types=frozenset(followed))

    def _bind_argument(self, name: str, placeholder: fx.Node) -> Traced:
        return self._lowering.bind_tensor(name, placeholder.meta["val"])

    def _bind_later(self, name: str, placeholder: fx.Node, forward: fx.Node, types: FloatTypes) -> Traced:
        """A tensor that the backward gets: what it is in the forward graph is known."""
        return self._lowering.bind_tensor(name, placeholder.meta["val"], types)

    def _check_output_shapes(self) -> None:
        for output in self._op.outputs:
            if output.shape != self._op.iteration_space:
                raise Unsupported(
                    f"output `{output.name}` has shape {output.shape}, the operation as a whole "
                    f"{self._op.iteration_space}: one kernel covers one iteration space."
                )

    def _drop_doubled_hints(self) -> None:
        """A variable that was assigned twice names its last value."""
        last: dict[str, Value] = {}
        for value, name in self._lowering.hints.items():
            last[name] = value
        outputs = {self._forward[output.node.name].value for output in self._op.outputs}
        for value, name in list(self._lowering.hints.items()):
            if value is not last[name] and value not in outputs:
                del self._lowering.hints[value]

    def _plan_backward(self) -> tuple[tuple[Gradient | None, ...], KernelPlan]:
        self._forward_values = frozenset(reachable(t.value for t in self._forward.values()))
        bound = {saved.backward.name: self._bind_saved(saved) for saved in self._op.saved}
        for tangent in self._op.tangents:
            name = f"d{tangent.output.name}"
            types = self._forward[tangent.output.node.name].types
            traced = self._bind_later(name, tangent.placeholder, tangent.output.node, types)
            bound[tangent.placeholder.name] = traced
            self._new_tensor(name, traced)
        known = self._lowering.run(self._op.backward.graph, bound)
        by_argument = {g.argument.name: known[g.node.name] for g in self._op.gradients}
        gradients: list[Gradient | None] = []
        stored: list[tuple[Tensor, Value]] = []
        loaded = set(loads_of([traced.value for traced in by_argument.values()]))
        first: dict[Value, str] = {}
        for argument in self._op.arguments:
            if argument.kind == "static":
                continue
            if argument.name not in by_argument:
                gradients.append(None)
                continue
            traced = by_argument[argument.name]
            gradient = self._gradient(argument.name, traced)
            if gradient.source == "kernel" and argument.name not in loaded:
                # Two such gradients have the upstream gradient's dtype, so that one tensor does for both.
                same = first.setdefault(traced.value, gradient.tensor.name)
                if same != gradient.tensor.name:
                    gradient = Gradient(gradient.tensor, "shared", upstream=same)
            gradients.append(gradient)
            if gradient.source == "kernel":
                stored.append((gradient.tensor, traced.value))
        return tuple(gradients), self._kernel("backward", stored)

    def _bind_saved(self, saved: Saved) -> Traced:
        forward = self._forward[saved.forward.name]
        if saved.kind in ("input", "scalar") or forward.value.is_leaf:
            return forward
        if saved.kind == "output":
            name = next(o.name for o in self._op.outputs if o.node is saved.forward)
        else:
            name = self._kept_name(saved)
        return self._bind_later(name, saved.backward, saved.forward, forward.types)

    def _kept_name(self, saved: Saved) -> str:
        """Of an intermediate that is kept: what it is, not what its node is called."""
        return self._kept.name(self._forward[saved.forward.name].value)

    def _gradient(self, name: str, traced: Traced) -> Gradient:
        value = traced.value
        tensor = Tensor(f"d{name}", Kind.FLOAT, self._tensors[name].types)
        if value.is_constant:
            return Gradient(tensor, "constant", constant=float(value.constant))
        if value.operation == "round" and value.operands[0].is_leaf:
            value = self._without_last_rounding(value, tensor)
        if value.operation == "load" and value.name in self._upstream():
            return Gradient(tensor, "upstream", upstream=value.name)
        return Gradient(tensor, "kernel")

    @staticmethod
    def _without_last_rounding(value: Value, tensor: Tensor) -> Value:
        """The store rounds to the tensor's type anyway."""
        while value.operation == "round" and value.types == tensor.types:
            value = value.operands[0]
        return value

    def _to_store(self, outputs: list[tuple[Tensor, Value]]) -> list[tuple[Tensor, Value]]:
        """As a kernel computes it."""
        outputs = [(tensor, self._without_last_rounding(value, tensor)) for tensor, value in outputs]
        return self._renamed(outputs, with_sigmoids([value for _, value in outputs], self._lowering.arithmetic))

    def _renamed(
        self, outputs: list[tuple[Tensor, Value]], replaced: Mapping[Value, Value]
    ) -> list[tuple[Tensor, Value]]:
        """With others in the place of values; those go by the same names."""
        hints, gradient_of = self._lowering.hints, self._lowering.gradient_of
        for old, new in replaced.items():
            if new is not old and not new.is_leaf:
                if old in hints:
                    hints.setdefault(new, hints[old])
                if old in gradient_of:
                    gradient_of.setdefault(new, gradient_of[old])
        return [(tensor, replaced.get(value, value)) for tensor, value in outputs]

    def _kernel(self, direction: str, outputs: list[tuple[Tensor, Value]]) -> KernelPlan:
        outputs = self._to_store(outputs)
        values = [value for _, value in outputs]
        needed = set(loads_of(values))
        order = [*self._upstream(), *(t.name for t in self._op.tensors)]
        order += [name for name in self._tensors if name not in order]
        inputs = tuple(self._tensors[name] for name in order if name in needed)
        used = {value.name for value in reachable(values) if value.operation == "scalar"}
        if outputs:
            self._refuse_lost_shape(direction, inputs)
        return KernelPlan(
            name=f"_{self._operation_name}_{direction}_kernel",
            outputs=tuple(outputs),
            inputs=inputs,
            scalars=tuple(scalar for name, scalar in self._scalars.items() if name in used),
            recomputed=frozenset() if direction == "forward" else self._forward_values,
        )

    def _refuse_lost_shape(self, direction: str, inputs: Iterable[Tensor]) -> None:
        shapes = []
        by_name = {argument.name: argument.shape or () for argument in self._op.tensors}
        for tensor in inputs:
            shape = torch.empty(by_name.get(tensor.name, self._op.iteration_space), device="meta")
            for dim in reversed(tensor.added_dims):
                shape = shape.unsqueeze(dim)
            shapes.append(shape.shape)
        try:
            together = tuple(torch.broadcast_shapes(*shapes))  # type: ignore[no-untyped-call]
        except RuntimeError:
            together = ()
        if together != self._op.iteration_space:
            raise Unsupported(
                f"what the {direction} reads does not have the shape of what it writes, "
                f"{self._op.iteration_space}; an input that only lends its shape is not supported."
            )

    def _saved_names(self, backward: KernelPlan) -> tuple[str, ...]:
        upstream = self._upstream()
        return tuple(tensor.name for tensor in backward.inputs if tensor.name not in upstream)

    def _upstream(self) -> tuple[str, ...]:
        return tuple(f"d{output.name}" for output in self._op.outputs)


def arguments_of(op: TracedOperation) -> tuple[Argument, ...]:
    """Of the Function, in the reference's order. A default is kept where every later argument has one, too."""
    found: list[Argument] = []
    defaults_allowed = True
    for argument in reversed([a for a in op.arguments if a.kind != "static"]):
        scalar = _scalar(argument) if argument.kind == "scalar" else None
        default = None
        if scalar is not None and not argument.required and defaults_allowed:
            default = repr(argument.default)
        defaults_allowed = default is not None
        found.append(Argument(argument.name, argument.symbol, scalar, default))
    return tuple(reversed(found))


def _scalar(argument: TracedArgument) -> Scalar:
    return Scalar(argument.name, Kind.INT if argument.dtype == "int" else Kind.FLOAT)
