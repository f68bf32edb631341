"""From a traced fx graph to values.

Broadcasts need no code in a kernel: tensors are expanded to the iteration space before the launch,
so `expand` and added leading dimensions vanish here. A dimension added further back is recorded,
for the launcher to add (`w.unsqueeze(-1)`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from tigon_tools.codegen.arithmetic import Arithmetic
from tigon_tools.codegen.point_ops import lowering_of
from tigon_tools.codegen.unsupported import Unsupported
from tigon_tools.codegen.values import FloatTypes, Kind, Value

EXPLICIT_CAST = "tigon_explicit_cast"
"""Mark in `node.meta` of a cast that the reference's author wrote; all others are promotion."""

_CASTS = {"aten._to_copy", "aten.to", "prims.convert_element_type", "tigon.cast"}
_VIEWS = {"aten.expand", "aten.unsqueeze", "aten.squeeze", "aten.view", "aten.reshape", "aten._unsafe_view"}

Dims = tuple[int, ...]


@dataclass(frozen=True)
class Traced:
    """What an fx node is in the kernel.

    types: the storage type PyTorch would give it.
    origins: names of the float tensors it is computed from, whatever was cast in between.
    added_dims: for a tensor as loaded: where the graph inserted dimensions of size one.
    """

    value: Value
    types: FloatTypes = frozenset()
    origins: frozenset[str] = frozenset()
    added_dims: Dims = ()


@dataclass
class Lowering:
    """Lowers graphs into one `Arithmetic`, so that forward and backward share values.

    input_dtype: the dtype the graphs were traced in; a cast to it follows the caller's dtype.
    names: what the reference calls the forward graph's nodes.
    added_dims: for each tensor, where the launcher has to insert dimensions (negative, from the last).
    hints: the same names, by value.
    gradient_of: the forward value that a gradient belongs to; for names.
    main_types: the storage type of the first argument in the dtype that the graphs were traced in.
    """

    input_dtype: torch.dtype
    names: Mapping[str, str] = field(default_factory=dict)
    arithmetic: Arithmetic = field(default_factory=Arithmetic)
    added_dims: dict[str, Dims] = field(default_factory=dict)
    hints: dict[Value, str] = field(default_factory=dict)
    gradient_of: dict[Value, Value] = field(default_factory=dict)
    main_types: FloatTypes = frozenset()
    _results: dict[int, Value] = field(default_factory=dict)
    _cast_from: dict[int | None, FloatTypes] = field(default_factory=dict)

    def bind_tensor(self, name: str, example: torch.Tensor, types: FloatTypes | None = None) -> Traced:
        """A tensor that the kernel loads. types: of a saved or upstream tensor, else its own."""
        kind = kind_of(example.dtype)
        if kind is not Kind.FLOAT:
            return Traced(self.arithmetic.values.load(name, kind), frozenset({str(example.dtype)[6:]}))
        types = self.own_types(name, example) if types is None else types
        return Traced(self.arithmetic.values.load(name, kind), types, frozenset({name}))

    def own_types(self, name: str, example: torch.Tensor) -> FloatTypes:
        """Of a floating argument: it follows itself, and what has no origin follows the first of the main dtype."""
        own = frozenset({name})
        if example.dtype == self.input_dtype and not self.main_types:
            self.main_types = own
        return own

    def bind_scalar(self, name: str, kind: Kind) -> Traced:
        return Traced(self.arithmetic.values.scalar(name, kind))

    def run(self, graph: fx.Graph, bound: Mapping[str, Traced]) -> dict[str, Traced]:
        """What every node of the graph is, by the node's name.

        Raises:
            Unsupported: an op that is not point-wise or not in the table.
        """
        known: dict[fx.Node, Traced] = {}
        for node in graph.nodes:
            if node.op == "placeholder":
                if node.name in bound:  # an unused one may be left out
                    known[node] = bound[node.name]
            elif node.op == "call_function":
                known[node] = self._lower(node, known)
            elif node.op == "output":
                for returned in node.all_input_nodes:
                    if returned.op != "placeholder":  # a saved input goes to the backward as it came
                        self._loaded(known[returned], returned)
            else:
                raise Unsupported(f"the graph holds a constant tensor ({node.target}), not an argument.")
        self._note_gradients(graph, known)
        return {node.name: traced for node, traced in known.items()}

    def _note_gradients(self, graph: fx.Graph, known: Mapping[fx.Node, Traced]) -> None:
        """Of which forward value each gradient is.

        Autograd numbers operations, and the nodes of an operation's backward carry its number
        (`seq_nr`): what they take from outside is the gradient of the operation's result.
        """
        is_backward = {node: node.meta.get("partitioner_tag") == "is_backward" for node in graph.nodes}
        is_gradient: dict[fx.Node, bool] = {}
        for node in graph.nodes:
            inputs = node.all_input_nodes
            is_gradient[node] = any(is_gradient[n] for n in inputs) if inputs else is_backward[node]
        for node, traced in known.items():
            number = node.meta.get("seq_nr")
            if number is None or node.op != "call_function":
                continue
            if not is_backward[node]:
                if not traced.value.uniform and traced.value.kind is Kind.FLOAT:
                    self._results[number] = traced.value
                continue
            if str(node.target) == "aten.add.Tensor":
                continue  # the sum of gradients from several uses belongs to no operation
            result = self._results.get(number)
            for source in node.all_input_nodes:
                from_outside = is_gradient[source] and source.meta.get("seq_nr") != number
                value = known[source].value
                if result is not None and from_outside and not value.is_leaf:
                    self.gradient_of.setdefault(value, result)

    def _lower(self, node: fx.Node, known: Mapping[fx.Node, Traced]) -> Traced:
        target = str(node.target)
        packet = target.rsplit(".", 1)[0]
        if packet in _VIEWS:
            return self._view(node, known)
        inputs = [known[n] for n in node.all_input_nodes]
        origins = frozenset().union(*(traced.origins for traced in inputs))
        if packet in _CASTS:
            return self._cast(node, known[node.all_input_nodes[0]])
        lowering = lowering_of(target)
        example = node.meta.get("val")
        if lowering is None or not isinstance(example, torch.Tensor):
            raise Unsupported(f"{target} is not a point-wise op that kernels are generated for.")

        arguments = [self._operand(node, place, item, known) for place, item in enumerate(node.args)]
        options = {name: self._operand(node, name, item, known) for name, item in node.kwargs.items()}
        try:
            value = lowering(self.arithmetic, *arguments, **options)
        except TypeError:
            raise Unsupported(f"{target} has arguments here that code generation does not know.") from None
        kind = kind_of(example.dtype)
        if kind is Kind.FLOAT:
            value = self.arithmetic.convert(value, kind)
        elif value.kind is not kind:
            value = self.arithmetic.convert(value, kind, frozenset({str(example.dtype)[6:]}))
        self.note_name(node, value)
        types = self._types(example, inputs, value)
        sources = {n.meta["val"].dtype for n in node.all_input_nodes if known[n].origins}
        if value.uniform and sources and example.dtype not in sources:
            types = frozenset({str(example.dtype)[6:]})  # full_like(x, 2.5, dtype=torch.float32)
        return Traced(value, types, origins)

    def _operand(self, node: fx.Node, place: int | str, item: Any, known: Mapping[fx.Node, Traced]) -> Any:
        """One argument of an op; what is neither a value nor a number is left as it is."""
        if isinstance(item, fx.Node):
            return self._loaded(known[item], item).value
        if isinstance(item, (bool, int, float)):
            return self.arithmetic.constant(item)
        return item

    def _types(self, example: torch.Tensor, inputs: Sequence[Traced], value: Value) -> FloatTypes:
        if not example.is_floating_point():
            return frozenset({str(example.dtype)[6:]})
        types = frozenset().union(
            *(traced.types for traced in inputs if traced.value.kind is Kind.FLOAT and not traced.value.uniform)
        )
        # Nothing that is computed here is wider, so float32 absorbs the rest. Numbers among truth values or
        # integers make PyTorch's default dtype; alone they make none.
        if "float32" in types or (not types and (example.dtype == torch.float32 or not value.uniform)):
            return frozenset({"float32"})
        return types

    def _cast(self, node: fx.Node, source: Traced) -> Traced:
        example = node.meta["val"]
        source = self._loaded(source, node.all_input_nodes[0])
        kind = kind_of(example.dtype)
        name = str(example.dtype)[6:]
        if kind is not Kind.FLOAT:
            types = frozenset({name})
            return Traced(self.arithmetic.convert(source.value, kind, types), types, source.origins)
        value = self.arithmetic.convert(source.value, Kind.FLOAT)
        if source.value.kind is not Kind.FLOAT:
            return Traced(value, frozenset({name}), source.origins)
        if not node.meta.get(EXPLICIT_CAST) and not str(node.target).startswith("tigon.cast"):
            return Traced(value, source.types, source.origins)
        if name == "float64" and not value.uniform:
            raise Unsupported("the reference casts to float64, and generated kernels compute in float32.")
        types = self._cast_types(node, source)
        value = value if value.uniform else self.arithmetic.round(value, types)
        self.note_name(node, value)
        return Traced(value, types, source.origins)

    def _cast_types(self, node: fx.Node, source: Traced) -> FloatTypes:
        """A cast to the traced dtype follows what is cast; its gradient goes back to where it came from."""
        dtype, number = node.meta["val"].dtype, node.meta.get("seq_nr")
        if node.meta.get("partitioner_tag") == "is_backward" and number in self._cast_from:
            return self._cast_from[number]
        self._cast_from[number] = source.types
        if dtype == self.input_dtype:
            # The graphs are traced in a dtype that the reference does not name, so this is the caller's.
            return source.origins or self.main_types or frozenset({str(dtype)[6:]})
        return frozenset({str(dtype)[6:]})

    def _view(self, node: fx.Node, known: Mapping[fx.Node, Traced]) -> Traced:
        source_node = node.all_input_nodes[0]
        source = known[source_node]
        if source.value.uniform or not _renumbers(node):
            return source
        before, after = _shapes(node)
        added = _added_dims(before, after)
        if added is None or source.value.operation != "load" or source.added_dims:
            raise Unsupported(
                f"{node.target} from shape {before} to {after} changes how elements are numbered, "
                "which a point-wise kernel cannot follow."
            )
        return Traced(source.value, source.types, source.origins, added)

    def _loaded(self, traced: Traced, node: fx.Node) -> Traced:
        """A tensor is loaded in one shape only; notes which."""
        if traced.value.operation == "load":
            name = traced.value.name
            if self.added_dims.setdefault(name, traced.added_dims) != traced.added_dims:
                raise Unsupported(f"`{name}` is used in two different shapes ({node.name}).")
        return traced

    def note_name(self, node: fx.Node, value: Value) -> None:
        """What the reference calls the node, for its value."""
        if node.name in self.names and not value.is_leaf:
            self.hints.setdefault(value, self.names[node.name])


def kind_of(dtype: torch.dtype) -> Kind:
    if dtype.is_floating_point:
        return Kind.FLOAT
    if dtype.is_complex:
        raise Unsupported(f"{dtype} tensors have no Triton counterpart.")
    return Kind.BOOL if dtype == torch.bool else Kind.INT


def _shapes(view: fx.Node) -> tuple[Dims, Dims]:
    return tuple(view.all_input_nodes[0].meta["val"].shape), tuple(view.meta["val"].shape)


def _renumbers(view: fx.Node) -> bool:
    """Whether elements have other numbers afterwards: more than leading ones come or go."""
    before, after = _shapes(view)
    return "expand" not in str(view.target) and _strip(before) != _strip(after)


def moves_elements(node: fx.Node) -> bool:
    """A view of something computed (of what is loaded, the launcher makes it) that a point-wise kernel cannot follow."""
    packet = str(node.target).rsplit(".", 1)[0]
    if packet not in _VIEWS or node.all_input_nodes[0].op == "placeholder":
        return False
    return node.all_input_nodes[0].meta["val"].numel() > 1 and _renumbers(node)


def _strip(shape: Dims) -> Dims:
    """Without leading dimensions of size one, which broadcasting adds and ignores."""
    start = next((i for i, size in enumerate(shape) if size != 1), len(shape))
    return shape[start:]


def _added_dims(before: Dims, after: Dims) -> Dims | None:
    """Where dimensions of size one were inserted, counted from the last; None if that is not all."""
    added = []
    rest = list(_strip(before))
    for position in range(1, len(after) + 1):
        size = after[-position]
        if rest and rest[-1] == size:
            rest.pop()
        elif size == 1:
            added.append(-position)
        else:
            return None
    if rest:
        return None
    outermost = len(after) - len(_strip(after))
    return tuple(sorted(dim for dim in added if dim >= outermost - len(after)))
