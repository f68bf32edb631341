"""The kernels that one plan over rows becomes, by how much of a row a program has.

`WHOLE`: whole rows, in registers. `PIECES`: whole rows that are too long for that, a piece at a time. `TILES`: some
columns of some rows, where nothing is reduced along them. Sums over rows of rows that are too long for a program
with registers for the sums get a kernel of their own, over tiles.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tigon_tools.codegen.plan import Tensor
from tigon_tools.codegen.row_expression import NEUTRAL
from tigon_tools.codegen.row_plan import RowKernelPlan
from tigon_tools.codegen.values import Extent, Kind, Value, Values, reachable


class Form(enum.Enum):
    """What a program has of the rows."""

    WHOLE = "whole"
    PIECES = "pieces"
    TILES = "tiles"


@dataclass(frozen=True)
class RowKernel:
    """One kernel of a file. renamed: values that are new in its plan, and what they stand for."""

    form: Form
    plan: RowKernelPlan
    renamed: Mapping[Value, Value]


@dataclass(frozen=True)
class RowKernels:
    """All of one direction. short: for rows that a program has whole. long: for others, one after the other."""

    short: RowKernel
    long: tuple[RowKernel, ...] = ()

    @property
    def all(self) -> tuple[RowKernel, ...]:
        return (self.short, *self.long)


def kernels_of(plan: RowKernelPlan) -> RowKernels:
    """What is written for this plan, which stores something."""
    if not plan.reduces_rows:
        return RowKernels(RowKernel(Form.TILES, plan, {}))
    whole = RowKernel(Form.WHOLE, plan, {})
    long_name = plan.name.replace("_kernel", "_long_rows_kernel")
    if not plan.partial:
        return RowKernels(whole, (RowKernel(Form.PIECES, replace(plan, name=long_name), {}),))
    summands = [value for tensor, value in plan.outputs if tensor.name in plan.partial]
    statistics = _statistics(summands)
    stored = [(tensor, value) for tensor, value in plan.outputs if tensor.name not in plan.partial]
    stored += [(tensor, value) for value, tensor in statistics.items()]
    shapes = {**plan.shapes, **{tensor.name: "" for tensor in statistics.values()}}
    rows = replace(plan, name=long_name, outputs=tuple(stored), partial=frozenset(), shapes=shapes)
    return RowKernels(whole, (RowKernel(Form.PIECES, rows, {}), _sums(plan, statistics)))


def statistics_of(kernels: RowKernels) -> list[Tensor]:
    """Numbers of each row that the kernels for long rows hand on to one another."""
    own = {tensor.name for tensor, _ in kernels.short.plan.outputs}
    return [tensor for kernel in kernels.long for tensor, _ in kernel.plan.outputs if tensor.name not in own]


def _statistics(summands: list[Value]) -> dict[Value, Tensor]:
    """Numbers of a row that take a reduction and that the summands use, each with a tensor to keep it in."""
    found: dict[Value, Tensor] = {}
    stack, seen = list(summands), set()
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        if value.extent & Extent.COLUMNS:
            stack.extend(reversed(value.operands))
        elif any(part.operation in NEUTRAL for part in reachable([value])):
            number = len(found) + 1
            found[value] = Tensor(f"row_statistic{number if number > 1 else ''}", Kind.FLOAT, frozenset({"float32"}))
    return found


def _sums(plan: RowKernelPlan, statistics: Mapping[Value, Tensor]) -> RowKernel:
    values = Values()
    new = {value: values.load(tensor.name, Kind.FLOAT, Extent.ROWS) for value, tensor in statistics.items()}
    outputs = tuple((tensor, _substituted(value, new)) for tensor, value in plan.outputs if tensor.name in plan.partial)
    loads = {value.name for value in reachable([value for _, value in outputs]) if value.operation == "load"}
    inputs = tuple(tensor for tensor in plan.inputs if tensor.name in loads)
    name = plan.name.replace("_kernel", "_sums_kernel")
    sums = replace(plan, name=name, outputs=outputs, inputs=(*inputs, *statistics.values()))
    return RowKernel(Form.TILES, sums, {made: value for value, made in new.items()})


def _substituted(root: Value, new: dict[Value, Value]) -> Value:
    """The same value of other leaves; `new` grows by what is built."""
    for value in reachable([root]):
        if value in new or not any(operand in new for operand in value.operands):
            continue
        operands = tuple(new.get(operand, operand) for operand in value.operands)
        if any(operand is not old for operand, old in zip(operands, value.operands, strict=True)):
            new[value] = replace(value, operands=operands)
    return new.get(root, root)
