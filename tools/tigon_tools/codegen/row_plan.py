"""What a kernel over whole rows consists of, before it is text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tigon_tools.codegen.plan import KernelPlan, Tensor
from tigon_tools.codegen.row_expression import NEUTRAL
from tigon_tools.codegen.values import Extent, Value


@dataclass(frozen=True)
class RowKernelPlan(KernelPlan):
    """One kernel, and what its launcher makes of its results.

    outputs: what the kernel stores: cells, one number a row, and sums over the rows of one program.
    partial: names of those sums; the launcher adds the programs' up. everything: those of them that are over the
        columns as well, one number a program.
    results: what the launcher returns, in order.
    formulas: results that the launcher computes itself, from `sums` and from what it was given.
    sums: a sum over rows, and the name of the output it is the sum of.
    rank: how many dimensions an input has to have; None for any.
    elements: of small vectors beside the rows, how many each has.
    shapes: of results that are not cells, as Python writes them in the launcher; "" where they are as stored.
    """

    partial: frozenset[str] = frozenset()
    everything: frozenset[str] = frozenset()
    results: tuple[Tensor, ...] = ()
    formulas: tuple[tuple[Tensor, Value], ...] = ()
    sums: Mapping[Value, str] = field(default_factory=dict)
    shapes: Mapping[str, str] = field(default_factory=dict)
    elements: Mapping[str, int] = field(default_factory=dict)
    rank: int | None = None

    @property
    def reduces_rows(self) -> bool:
        """Whether a program has to see whole rows."""
        return any(value.operation in NEUTRAL for value in self.values)

    @property
    def partial_names(self) -> list[str]:
        """In the order of the outputs."""
        return [tensor.name for tensor, _ in self.outputs if tensor.name in self.partial]

    def extent(self, name: str) -> Extent:
        """Of an input or output of the kernel."""
        for value in self.values:
            if value.operation == "load" and value.name == name:
                return value.extent
        if name in self.partial:
            return Extent.COLUMNS
        if any(tensor.name == name for tensor, _ in self.outputs):
            return Extent.ROWS if name in self.shapes else Extent.CELLS
        return Extent.ONE

    def named(self, *extents: Extent) -> tuple[Tensor, ...]:
        """Inputs of these extents."""
        return tuple(tensor for tensor in self.inputs if self.extent(tensor.name) in extents)
