"""From a traced operation with reductions to the plan of its file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from torch import fx

from tigon_tools.codegen.kernel import loads_of
from tigon_tools.codegen.lowering import Lowering, Traced
from tigon_tools.codegen.plan import Gradient, Narrow, Tensor
from tigon_tools.codegen.planning import Planned, Planner
from tigon_tools.codegen.row_expression import NEUTRAL
from tigon_tools.codegen.row_lowering import RowLowering
from tigon_tools.codegen.row_plan import RowKernelPlan
from tigon_tools.codegen.row_sums import simple_sums
from tigon_tools.codegen.unsupported import Unsupported
from tigon_tools.codegen.values import Extent, FloatTypes, Kind, Value, reachable

FLOAT32: FloatTypes = frozenset({"float32"})


class RowPlanner(Planner):
    """Kernels read whole rows; sums over rows are made in two steps, by the programs and by the launcher."""

    _lowering: RowLowering

    def plan(self) -> Planned:
        planned = super().plan()
        if not self._lowering.counts_rows:
            return planned
        rank = len(self._op.iteration_space)
        kernels = (planned.ops.forward, planned.ops.backward)
        forward, backward = (replace(kernel, rank=rank) for kernel in kernels)  # type: ignore[call-arg]
        return replace(planned, ops=replace(planned.ops, forward=forward, backward=backward))

    def _new_lowering(self, local_names: Mapping[str, str]) -> Lowering:
        return RowLowering(self._op.input_dtype, local_names, space=self._op.iteration_space)

    def _new_tensor(self, name: str, traced: Traced) -> Tensor:
        """A number that PyTorch counts in integers is a float32 here."""
        if traced.value.kind is Kind.FLOAT and not traced.types:
            traced = replace(traced, types=FLOAT32)
        return super()._new_tensor(name, traced)

    def _kept_tensor(self, name: str, traced: Traced) -> Tensor:
        """A statistic of the row is a float: it costs nothing beside the row, and the gradients are made of it."""
        is_statistic = traced.value.kind is Kind.FLOAT and not traced.value.extent & Extent.COLUMNS
        return self._new_tensor(name, replace(traced, types=FLOAT32) if is_statistic else traced)

    def _bind_argument(self, name: str, placeholder: fx.Node) -> Traced:
        return self._lowering.bind_argument(name, placeholder)

    def _bind_later(self, name: str, placeholder: fx.Node, forward: fx.Node, types: FloatTypes) -> Traced:
        dimensions = self._lowering.dimensions.get(forward, tuple(() for _ in placeholder.meta["val"].shape))
        return self._lowering.bind(name, placeholder, dimensions, types)

    def _check_output_shapes(self) -> None:
        """A number of the row or of the columns is shaped by the launcher; an element for each is as the inputs are."""
        for output in self._op.outputs:
            is_cells = self._forward[output.node.name].value.extent == Extent.CELLS
            if is_cells and output.shape != self._op.iteration_space:
                raise Unsupported(
                    f"output `{output.name}` has shape {output.shape}, the operation as a whole "
                    f"{self._op.iteration_space}: what has an element for each of the input's has its shape."
                )

    def _narrow(self, outputs: list[Tensor], values: list[Traced]) -> tuple[Narrow, ...]:
        return ()

    def _gradient(self, name: str, traced: Traced) -> Gradient:
        gradient = super()._gradient(name, traced)
        if gradient.source == "constant":
            raise Unsupported(f"the gradient of `{name}` is the same number everywhere.")
        argument = next(a for a in self._op.arguments if a.name == name)
        if gradient.source == "upstream" and argument.shape != self._op.iteration_space:
            return Gradient(gradient.tensor, "kernel")
        return gradient

    def _kernel(self, direction: str, outputs: list[tuple[Tensor, Value]]) -> RowKernelPlan:
        outputs = self._to_store(outputs)
        whole_rows = self._needs_whole_rows([value for _, value in outputs])
        if whole_rows:
            outputs = self._renamed(outputs, simple_sums([value for _, value in outputs], self._lowering.arithmetic))
        stored: list[tuple[Tensor, Value]] = []
        formulas: list[tuple[Tensor, Value]] = []
        sums: dict[Value, str] = {}
        partial: set[str] = set()
        shapes: dict[str, str] = {}
        for tensor, value in outputs:
            whole = self._shape_of(tensor.name, value)
            if whole is not None:
                shapes[tensor.name] = whole
            if value.extent & Extent.ROWS:
                _refuse_sums_within([value])
                stored.append((tensor, value))
                continue
            formulas.append((tensor, value))
        everything: set[str] = set()
        for tensor, value in formulas:
            for total in _sums_over_rows(value):
                if total in sums:
                    continue
                (operand,) = total.operands
                if operand.operation == "row_sum" and not whole_rows:
                    (operand,) = operand.operands
                _refuse_sums_within([operand])
                by_column = bool(operand.extent & Extent.COLUMNS)
                name = f"{tensor.name}_{'partial' if by_column else 'rows'}"
                name = name if name not in sums.values() else f"{name}{len(sums) + 1}"
                sums[total] = name
                if by_column:
                    partial.add(name)
                    if total.operands[0] is not operand:
                        everything.add(name)
                else:
                    shapes[name] = ""
                stored.append((Tensor(name, Kind.FLOAT, FLOAT32), operand))
        plan = self._assembled(direction, outputs, stored, formulas, sums, partial, shapes)
        return replace(plan, everything=frozenset(everything))

    @staticmethod
    def _needs_whole_rows(values: list[Value]) -> bool:
        """Whether a row is reduced for more than a sum of everything."""
        totals = [total for value in values for total in _sums_over_rows(value)]
        reduced = {total.operands[0] for total in totals if total.operands[0].operation == "row_sum"}
        others = [value for value in values if not any(True for _ in _sums_over_rows(value))]
        inner = [operand for value in reduced for operand in value.operands]
        inner += [total.operands[0] for total in totals if total.operands[0] not in reduced]
        return any(value.operation in NEUTRAL for value in reachable([*others, *inner]))

    def _assembled(
        self,
        direction: str,
        outputs: list[tuple[Tensor, Value]],
        stored: list[tuple[Tensor, Value]],
        formulas: list[tuple[Tensor, Value]],
        sums: dict[Value, str],
        partial: set[str],
        shapes: dict[str, str],
    ) -> RowKernelPlan:
        kernel_values = [value for _, value in stored]
        host_values = [value for _, value in formulas]
        needed = set(loads_of([*kernel_values, *host_values]))
        order = [*self._upstream(), *(t.name for t in self._op.tensors)]
        order += [name for name in self._tensors if name not in order]
        used = {v.name for v in reachable([*kernel_values, *host_values]) if v.operation == "scalar"}
        plan = RowKernelPlan(
            name=f"_{self._operation_name}_{direction}_kernel",
            outputs=tuple(stored),
            inputs=tuple(self._tensors[name] for name in order if name in needed),
            scalars=tuple(scalar for name, scalar in self._scalars.items() if name in used),
            recomputed=frozenset() if direction == "forward" else self._forward_values,
            partial=frozenset(partial),
            results=tuple(tensor for tensor, _ in outputs),
            formulas=tuple(formulas),
            sums=sums,
            shapes=shapes,
            elements=self._vectors(kernel_values),
        )
        if stored and not plan.named(Extent.CELLS):
            raise Unsupported(f"the {direction} reads no tensor of the whole shape {self._op.iteration_space}.")
        return plan

    def _vectors(self, values: list[Value]) -> dict[str, int]:
        picked = {value.name for value in reachable(values) if value.element is not None}
        return {a.name: math.prod(a.shape or ()) for a in self._op.tensors if a.name in picked}

    def _shape_of(self, name: str, value: Value) -> str | None:
        """How the launcher shapes a result that has not one number for each element; None for one that has."""
        shape = next((o.shape for o in self._op.outputs if o.name == name), None)
        argument = next((a for a in self._op.arguments if f"d{a.name}" == name), None)
        if shape is None and argument is not None:
            shape = argument.shape
        if shape is None:  # kept for the backward
            return None if value.extent == Extent.CELLS else ""
        if shape == self._op.iteration_space:
            return None
        if value.extent & Extent.ROWS:
            keeps = len(shape) == len(self._op.iteration_space)
            return "(*shape[:-1], 1)" if keeps else "shape[:-1]"
        if all(size == 1 for size in shape):
            return repr(tuple(shape))
        return "" if len(shape) == 1 else f"({'1, ' * (len(shape) - 1)}-1)"


def _sums_over_rows(value: Value) -> Iterator[Value]:
    """The outermost sums over rows that a value is made of."""
    stack, seen = [value], set()
    while stack:
        part = stack.pop()
        if part in seen:
            continue
        seen.add(part)
        if part.operation == "column_sum":
            yield part
        else:
            stack.extend(reversed(part.operands))


def _refuse_sums_within(values: list[Value]) -> None:
    if any(value.operation == "column_sum" for value in reachable(values)):
        raise Unsupported("a sum over rows (aten.sum) is needed before the rows are done, which takes another kernel.")
