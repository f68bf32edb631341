"""From a traced graph with reductions to values: which dimension is the row, what is summed over what.

Every node's dimensions are followed through the graph. A reduction over the last dimension of the iteration space
becomes a value of the row, one over all others a sum over rows, and what PyTorch has as one op (softmax, layer
norm) becomes the steps that a kernel makes.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import fx

from tigon_tools.codegen.lowering import Lowering, Traced, kind_of
from tigon_tools.codegen.row_ops import SPECIAL, reduced_dims
from tigon_tools.codegen.unsupported import Unsupported
from tigon_tools.codegen.values import Extent, FloatTypes, Kind, Value
from tigon_tools.codegen.vectors import is_picked_from, lowered, vector
from tigon_tools.trace.axes import axes_of
from tigon_tools.trace.reference import FLOATING
from tigon_tools.trace.sizes import SIZES, UNKNOWN

Dimension = tuple[int, ...]
"""The axes of the iteration space that a tensor's dimension runs over: none of size one, several where flattened."""

_VIEWS = ("aten.expand", "aten.unsqueeze", "aten.squeeze", "aten.view", "aten.reshape", "aten._unsafe_view")
_SUMS = ("aten.sum", "aten.mean")
_EXTREMES = {"aten.amax": "row_max", "aten.amin": "row_min"}


@dataclass
class RowLowering(Lowering):
    """Lowers graphs over an iteration space of rows.

    space: the iteration space as traced; its last dimension is the row.
    dimensions: of each node, filled as it is lowered; those of placeholders are given.
    counts_rows: a number in the graph is the number of rows, which may be the size of the first dimension alone.
    """

    space: tuple[int, ...] = ()
    counts_rows: bool = False
    dimensions: dict[fx.Node, tuple[Dimension, ...]] = field(default_factory=dict)
    parts: dict[fx.Node, tuple[Traced, ...]] = field(default_factory=dict)

    @property
    def last(self) -> int:
        return len(self.space) - 1

    def bind_argument(self, name: str, placeholder: fx.Node, types: FloatTypes | None = None) -> Traced:
        """A tensor argument, by its shape.

        Raises:
            Unsupported: it has neither rows nor columns of the iteration space.
        """
        example = placeholder.meta["val"]
        axes = axes_of(example.shape, self.space, str(example.dtype)[6:])
        if is_picked_from(placeholder):
            return self._bind_vector(name, placeholder, types)
        if axes is None:
            raise Unsupported(f"`{name}` of shape {tuple(example.shape)} has no place in {self.space}.")
        return self.bind(name, placeholder, tuple(() if axis is None else (axis,) for axis in axes), types)

    def bind(
        self, name: str, placeholder: fx.Node, dimensions: tuple[Dimension, ...], types: FloatTypes | None = None
    ) -> Traced:
        """A tensor whose dimensions are known: saved, or an upstream gradient."""
        example = placeholder.meta["val"]
        self.dimensions[placeholder] = dimensions
        value = self.arithmetic.values.load(name, kind_of(example.dtype), self._extent(name, dimensions))
        if value.kind is not Kind.FLOAT:
            return Traced(value, frozenset({str(example.dtype)[6:]}))
        types = self.own_types(name, example) if types is None else types
        # What is saved follows the inputs that it was made of; a statistic in float32 follows nothing.
        return Traced(value, types, types - frozenset(FLOATING))

    def _bind_vector(self, name: str, placeholder: fx.Node, types: FloatTypes | None) -> Traced:
        example = placeholder.meta["val"]
        kind, values = kind_of(example.dtype), self.arithmetic.values
        elements = [values.load(name, kind, Extent.ONE, element) for element in range(example.numel())]
        self.dimensions[placeholder] = ((),)
        types = self.own_types(name, example) if types is None else types
        return Traced(vector(values, elements), types, types - frozenset(FLOATING))

    def _extent(self, name: str, dimensions: tuple[Dimension, ...]) -> Extent:
        axes = {axis for dimension in dimensions for axis in dimension}
        rows = axes - {self.last}
        if rows and rows != set(range(self.last)):
            raise Unsupported(f"`{name}` broadcasts over some of the leading dimensions, not over all of them.")
        return (Extent.ROWS if rows else Extent.ONE) | (Extent.COLUMNS if self.last in axes else Extent.ONE)

    def _lower(self, node: fx.Node, known: Mapping[fx.Node, Traced]) -> Traced:
        packet = str(node.target).rsplit(".", 1)[0]
        picked = lowered(self.arithmetic.values, node, known, super()._lower)
        if picked is not None:
            self.dimensions[node] = tuple(() for _ in node.meta["val"].shape)
            return picked
        if node.target is operator.getitem:
            source, index = node.args
            assert isinstance(source, fx.Node) and isinstance(index, int)
            self.dimensions[node] = self._part_dimensions(source, index)
            return self.parts[source][index]
        if packet in _VIEWS:
            source = node.all_input_nodes[0]
            self.dimensions[node] = self._viewed(node, source)
            return known[source]
        special = SPECIAL.get(packet)
        if special is not None:
            return special(self, node, known)
        if packet in _SUMS or packet in _EXTREMES:
            return self._reduction(node, packet, known)
        traced = super()._lower(node, known)
        self.dimensions[node] = self._broadcast(node)
        return traced

    def _view(self, node: fx.Node, known: Mapping[fx.Node, Traced]) -> Traced:
        raise AssertionError("views are followed by their dimensions")

    def _loaded(self, traced: Traced, node: fx.Node) -> Traced:
        return traced

    def _operand(self, node: fx.Node, place: int | str, item: Any, known: Mapping[fx.Node, Traced]) -> Any:
        size = node.meta.get(SIZES, {}).get(place)
        if size is None:
            return super()._operand(node, place, item, known)
        if size == UNKNOWN:
            raise Unsupported(f"{node.target} has a number that depends on the shape in a way that is not known.")
        self.counts_rows |= size.name in ("n_rows", "1 / n_rows")
        return self.arithmetic.multiply(self.arithmetic.constant(size.factor), self.size(size.name))

    def size(self, name: str) -> Value:
        """A size by its name in `trace.sizes`, as a value."""
        m = self.arithmetic
        rows, columns = m.values.size("n_rows"), m.values.size("n_cols")
        one = m.constant(1)
        return {
            "n_rows": lambda: rows,
            "n_cols": lambda: columns,
            "n_cols - 1": lambda: m.subtract(columns, one),
            "1 / n_cols": lambda: m.divide(one, columns),
            "1 / n_rows": lambda: m.divide(one, rows),
            "1 / (n_cols - 1)": lambda: m.divide(one, m.subtract(columns, one)),
            "n_rows * n_cols": lambda: m.multiply(m.convert(rows, Kind.FLOAT), m.convert(columns, Kind.FLOAT)),
            "1 / (n_rows * n_cols)": lambda: m.divide(m.divide(one, rows), columns),
        }[name]()

    def dims_of(self, node: fx.Node) -> tuple[Dimension, ...]:
        """Of an input; a constant's by its shape."""
        if node in self.dimensions:
            return self.dimensions[node]
        return tuple(() for _ in node.meta["val"].shape)

    def _broadcast(self, node: fx.Node) -> tuple[Dimension, ...]:
        """Of a point-wise op's result: what its inputs have at each place from the last."""
        shape = node.meta["val"].shape
        result: list[Dimension] = [()] * len(shape)
        for source in node.all_input_nodes:
            dims = self.dims_of(source)
            for position, dimension in enumerate(dims):
                place = position + len(shape) - len(dims)
                if dimension and result[place] and result[place] != dimension:
                    raise Unsupported(
                        f"{node.target} combines different dimensions of the operation element by element."
                    )
                result[place] = dimension or result[place]
        return tuple(result)

    def _viewed(self, node: fx.Node, source: fx.Node) -> tuple[Dimension, ...]:
        before, after = tuple(source.meta["val"].shape), tuple(node.meta["val"].shape)
        dims = self.dims_of(source)
        if "expand" in str(node.target):
            offset = len(after) - len(before)
            return (((),) * offset) + dims
        return regrouped(before, dims, after, self.space, str(node.target))

    def _part_dimensions(self, source: fx.Node, index: int) -> tuple[Dimension, ...]:
        whole = self.dims_of(source.all_input_nodes[0])
        return whole if index == 0 else (*whole[:-1], ())

    def _reduction(self, node: fx.Node, packet: str, known: Mapping[fx.Node, Traced]) -> Traced:
        source = node.all_input_nodes[0]
        traced = known[source]
        dims = reduced_dims(node, len(self.dims_of(source)))
        keep = bool(node.args[2]) if len(node.args) > 2 else bool(node.kwargs.get("keepdim", False))
        axes = self.reduced_axes(node, source, dims)
        if packet in _EXTREMES:
            value = self.extreme(_EXTREMES[packet], traced.value, axes)
        else:
            value = self.sum(traced.value, axes)
            if packet == "aten.mean":
                value = self.over_sizes(value, axes)
        return self.as_reduced(node, source, value, self._reduced_types(node, traced), dims, keep)

    def as_reduced(
        self, node: fx.Node, source: fx.Node, value: Value, types: FloatTypes, dims: Sequence[int], keep: bool
    ) -> Traced:
        before = self.dims_of(source)
        if keep:
            self.dimensions[node] = tuple(() if i in dims else d for i, d in enumerate(before))
        else:
            self.dimensions[node] = tuple(d for i, d in enumerate(before) if i not in dims)
        self.note_name(node, value)
        return Traced(value, types, frozenset())

    def _reduced_types(self, node: fx.Node, traced: Traced) -> FloatTypes:
        """A count has none, like a number; with `dtype=` the one that is named."""
        if not node.meta["val"].is_floating_point():
            return frozenset()
        return traced.types or frozenset({str(node.meta["val"].dtype)[6:]})

    def reduced_axes(self, node: fx.Node, source: fx.Node, dims: Sequence[int]) -> frozenset[int]:
        """Axes of the iteration space that go; all rows or none.

        A dimension that is longer than one and yet has no axis is a number's that was expanded.
        """
        shape, dimensions = source.meta["val"].shape, self.dims_of(source)
        filled = axes_of(shape, self.space) or (None,) * len(shape)
        axes: set[int] = set()
        for dim in dims:
            axes |= set(dimensions[dim])
            expanded = filled[dim]
            if not dimensions[dim] and shape[dim] > 1 and expanded is not None:
                axes.add(expanded)
        rows = axes - {self.last}
        if rows and rows != set(range(self.last)):
            raise Unsupported(f"{node.target} reduces some of the leading dimensions, not all of them.")
        return frozenset(axes)

    def sum(self, value: Value, axes: frozenset[int]) -> Value:
        """Over the axes; what is the same along one is multiplied by its size."""
        m = self.arithmetic
        value = m.convert(value, Kind.FLOAT)
        if self.last in axes:
            has_columns = bool(value.extent & Extent.COLUMNS)
            value = m.call("row_sum", value) if has_columns else m.multiply(m.values.size("n_cols"), value)
        if axes - {self.last}:
            has_rows = bool(value.extent & Extent.ROWS)
            value = m.call("column_sum", value) if has_rows else m.multiply(m.values.size("n_rows"), value)
        return value

    def extreme(self, operation: str, value: Value, axes: frozenset[int]) -> Value:
        """The largest or smallest of a row."""
        if axes - {self.last}:
            raise Unsupported(f"a {operation.removeprefix('row_')}imum over rows, which one program does not see.")
        if not value.extent & Extent.COLUMNS:
            return value
        return self.arithmetic.call(operation, self.arithmetic.convert(value, Kind.FLOAT))

    def over_sizes(self, value: Value, axes: frozenset[int]) -> Value:
        m = self.arithmetic
        if self.last in axes:
            value = m.divide(value, m.values.size("n_cols"))
        if axes - {self.last}:
            value = m.divide(value, m.values.size("n_rows"))
        return value


def regrouped(
    before: tuple[int, ...], dims: tuple[Dimension, ...], after: tuple[int, ...], space: tuple[int, ...], target: str
) -> tuple[Dimension, ...]:
    """Dimensions after a view that adds or drops ones, flattens neighbours, or takes flattened ones apart.

    Raises:
        Unsupported: the view cuts across dimensions.
    """
    axes = [axis for dimension in dims for axis in dimension]
    sizes = [space[axis] for axis in axes]
    if any(size > 1 and not dimension for size, dimension in zip(before, dims, strict=True)):
        # A number that was expanded: there is no telling its dimensions apart, and no need to.
        return tuple(() for _ in after)
    result: list[Dimension] = []
    position = 0
    for size in after:
        group: list[int] = []
        product = 1
        while product < size and position < len(axes):
            product *= sizes[position]
            group.append(axes[position])
            position += 1
        if product != size:
            raise Unsupported(f"{target} from shape {before} to {after} changes how elements are numbered.")
        result.append(tuple(group))
    if any(space[axis] > 1 for axis in axes[position:]):
        raise Unsupported(f"{target} from shape {before} to {after} changes how elements are numbered.")
    return tuple(result)
