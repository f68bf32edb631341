"""The maths of a traced graph, as a person writes it.

A value used once is written where it is used; one used several times gets a line of its own. What
exactly is a known function (`x * sigmoid(x)`) is shown by its name; this is display only.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence

import torch
from torch import fx

from tigon_tools.trace.operation import TracedOperation

# Binding strength, as in Python: a sum inside a product needs parentheses.
_SUM, _PRODUCT, _UNARY, _POWER, _ATOM = 1, 2, 3, 4, 5
_COMPARISON = 0

_INFIX = {
    "add": (" + ", _SUM),
    "sub": (" - ", _SUM),
    "mul": (" * ", _PRODUCT),
    "div": (" / ", _PRODUCT),
    "gt": (" > ", _COMPARISON),
    "ge": (" >= ", _COMPARISON),
    "lt": (" < ", _COMPARISON),
    "le": (" <= ", _COMPARISON),
    "eq": (" == ", _COMPARISON),
    "ne": (" != ", _COMPARISON),
    "logical_and": (" & ", _COMPARISON),
    "bitwise_and": (" & ", _COMPARISON),
    "logical_or": (" | ", _COMPARISON),
    "bitwise_or": (" | ", _COMPARISON),
}
_TRANSPARENT = frozenset("alias detach clone expand unsqueeze squeeze view lift_fresh_copy _to_copy".split())
_RENAMED = {
    "_softmax": "softmax",
    "_log_softmax": "log_softmax",
    "amax": "max",
    "amin": "min",
    "clamp_min": "max",
    "clamp_max": "min",
}

_REDUCTIONS = frozenset("sum mean amax amin".split())

_SHORT = {"add": "s", "sub": "s", "mul": "p", "div": "q", "sigmoid": "sig", "tanh": "th", "exp": "e", "erf": "er"}
"""Names for shared values; not those of functions, `sigmoid = sigmoid(x)` would confuse."""

LONGEST_TERM = 160
"""Characters of a value that is written where it is used: a line and a half of a profile."""

_Term = tuple[str, int]


class _Writer:
    """Writes one graph; `names` are the placeholders' symbols. A cast to `input_dtype` is `.to(dtype)`."""

    def __init__(self, names: Mapping[fx.Node, str], taken: set[str], input_dtype: torch.dtype) -> None:
        self._input_dtype = input_dtype
        self.names = dict(names)
        self.lines: dict[str, str] = {}
        self._taken = taken | set(names.values())
        self._terms: dict[fx.Node, _Term] = {}

    def term(self, node: object) -> _Term:
        if isinstance(node, fx.Node):
            if node in self.names:
                return self.names[node], _ATOM
            if node not in self._terms:
                self._terms[node] = self._write(node)
            return self._terms[node]
        return _number(node)

    def name(self, node: fx.Node, symbol: str) -> None:
        """Give a value a line of its own."""
        text, _ = self.term(node)
        if node in self.names:
            self.lines.setdefault(symbol, text)
            return
        self.lines[symbol] = text
        self.names[node] = symbol

    def name_if_shared(self, node: fx.Node) -> None:
        """Values used more than once, unless they are short or only carry another value; and what gets too long.

        Asked for every value in the graph's order, so that a term is always written from terms that are there.
        """
        if node in self.names or _op(node) in _TRANSPARENT:
            return
        text, strength = self.term(node)
        if len(_users(node)) < 2 and len(text) <= LONGEST_TERM:
            return
        if (strength == _ATOM and len(text) <= 24) or len(text) <= 10:
            return
        self.name(node, self._fresh(_op(node)))

    def _fresh(self, op: str) -> str:
        base = _RENAMED.get(op, op).lstrip("_")
        base = _SHORT.get(base, f"{base}_")
        name, count = base, 1
        while name in self._taken or name in self.lines:
            count += 1
            name = f"{base}{count}"
        self._taken.add(name)
        return name

    def _write(self, node: fx.Node) -> _Term:
        if node.op == "get_attr":  # a constant tensor of the reference
            return str(node.target).strip("_"), _ATOM
        op = _op(node)
        args = list(node.args)
        if op in _TRANSPARENT:
            return self.term(args[0])
        if op == "convert_element_type":
            if not node.meta.get("tigon_explicit_cast"):
                return self.term(args[0])
            dtype = "dtype" if args[1] == self._input_dtype else str(args[1])[6:]
            return f"{self._operand(args[0], _ATOM)}.to({dtype})", _ATOM
        over = _over(node, op)
        if over is not None:
            return f"{_RENAMED.get(op, op)}({self.term(args[0])[0]}{over})", _ATOM
        if node.target is operator.getitem:
            return f"{self._operand(args[0], _ATOM)}[{args[1]}]", _ATOM
        known = self._known_function(node, op, args)
        if known is not None:
            return known
        if op in _INFIX and len(args) >= 2:
            return self._infix(op, args)
        if op == "neg":
            return f"-{self._operand(args[0], _UNARY)}", _UNARY
        if op == "pow":
            if args[1] == 1:
                return self.term(args[0])
            return f"{self._operand(args[0], _ATOM)}**{self._operand(args[1], _ATOM)}", _POWER
        if op == "reciprocal":
            return f"1 / {self._operand(args[0], _POWER)}", _PRODUCT
        if op == "rsub":
            return self._infix("sub", [args[1], args[0]])
        if op in ("full", "scalar_tensor", "full_like"):
            return _number(args[0] if op == "scalar_tensor" else args[1])
        if op in ("zeros_like", "zeros", "ones_like", "ones"):
            return ("0" if op.startswith("zeros") else "1"), _ATOM
        return self._call(_RENAMED.get(op, op), node)

    def _known_function(self, node: fx.Node, op: str, args: Sequence[object]) -> _Term | None:
        if op == "mul" and len(args) == 2:
            for x, y in (args, args[::-1]):
                inner = y if isinstance(y, fx.Node) else None
                if inner is not None and _op(inner) == "sigmoid" and _same(inner.args[0], x):
                    return f"silu({self.term(x)[0]})", _ATOM
            if _same(args[0], args[1]):
                return f"{self._operand(args[0], _ATOM)}**2", _POWER
        if op == "sub" and len(args) == 2:
            argument = _of_log_softmax(args[0], args[1])
            if argument is not None:
                return f"log_softmax({self.term(argument)[0]})", _ATOM
        if op == "where" and len(args) == 3:
            return f"where({', '.join(self.term(a)[0] for a in args)})", _ATOM
        if op == "clamp":
            low, high = (self.term(a)[0] if a is not None else None for a in (*args[1:3], *([None] * (3 - len(args)))))
            if low is None:
                return f"min({self.term(args[0])[0]}, {high})", _ATOM
            if high is None:
                return f"max({self.term(args[0])[0]}, {low})", _ATOM
            return f"clamp({self.term(args[0])[0]}, {low}, {high})", _ATOM
        return None

    def _infix(self, op: str, args: Sequence[object]) -> _Term:
        sign, strength = _INFIX[op]
        if op == "mul" and 1 in (args[0], args[1]):
            return self.term(args[0] if args[1] == 1 else args[1])
        left = self._operand(args[0], _SUM if strength == _COMPARISON else strength)
        # a - (b - c) and a / (b * c) keep their parentheses.
        right = self._operand(args[1], strength + (1 if op in ("sub", "div") or strength == _COMPARISON else 0))
        return f"{left}{sign}{right}", strength

    def _operand(self, node: object, at_least: int) -> str:
        text, strength = self.term(node)
        return text if strength >= at_least else f"({text})"

    def _call(self, name: str, node: fx.Node) -> _Term:
        parts = [_argument(self, a) for a in node.args]
        parts += [
            f"{k}={v}"
            for k, v in node.kwargs.items()
            if k in ("approximate", "correction", "keepdim") and v is not None
        ]
        return f"{name}({', '.join(parts)})", _ATOM


def _argument(writer: _Writer, value: object) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_argument(writer, item) for item in value) + "]"
    return writer.term(value)[0]


def _number(value: object) -> _Term:
    if isinstance(value, float):
        text = f"{value:.9g}"
        return (text, _ATOM) if value >= 0 else (text, _UNARY)
    if isinstance(value, int) and not isinstance(value, bool) and value < 0:
        return str(value), _UNARY
    return str(value), _ATOM


def _same(x: object, y: object) -> bool:
    return _through(x) is _through(y) if isinstance(x, fx.Node) and isinstance(y, fx.Node) else False


def _through(node: object) -> object:
    while isinstance(node, fx.Node) and (
        _op(node) in _TRANSPARENT or (_op(node) == "convert_element_type" and not node.meta.get("tigon_explicit_cast"))
    ):
        node = node.args[0]
    return node


def _op(node: fx.Node) -> str:
    """The op's short name; nothing for a placeholder, whose target is a name too."""
    if node.op != "call_function":
        return ""
    parts = str(node.target).split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def _over(node: fx.Node, op: str) -> str | None:
    """What a reduction goes over, in words: nothing for the row; None for what is no reduction."""
    source = node.args[0] if node.args else None
    if op not in _REDUCTIONS or not isinstance(source, fx.Node):
        return None
    rank = source.meta["val"].dim()
    given = node.args[1] if len(node.args) > 1 else None
    dims = {int(d) % rank for d in given} if isinstance(given, (list, tuple)) and given else set(range(rank))
    if rank and dims == {rank - 1}:
        return ""
    if dims == set(range(rank)):
        return ", all"
    return ", rows" if dims == set(range(rank - 1)) else f", {sorted(dims)}"


def _of_log_softmax(shifted: object, log: object) -> fx.Node | None:
    """x of (x - max(x)) - log(sum(exp(x - max(x))))."""
    node = log
    for step in ("log", "sum", "exp"):
        if not isinstance(node, fx.Node) or _op(node) != step:
            return None
        node = node.args[0]
    if node is not shifted or not isinstance(node, fx.Node) or _op(node) != "sub":
        return None
    x, largest = node.args[:2]
    is_largest = isinstance(largest, fx.Node) and _op(largest) == "amax" and largest.args[0] is x
    return x if is_largest and isinstance(x, fx.Node) else None


def _users(node: fx.Node) -> set[fx.Node]:
    users: set[fx.Node] = set()
    for user in node.users:
        if user.op == "output":
            users.add(user)
        elif _through(user) is not user:
            users |= _users(user)
        else:
            users.add(user)
    return users


def forward_formulas(operation: TracedOperation) -> dict[str, str]:
    """Symbol to right-hand side: shared and saved intermediates in order, then each output."""
    names = {a.placeholder: a.symbol for a in operation.arguments if a.placeholder is not None}
    outputs = {s.forward: s.symbol for s in operation.saved if s.kind == "intermediate"}
    outputs.update({o.node: o.symbol for o in operation.outputs})
    return _formulas(operation.forward.graph, names, outputs, operation.input_dtype)


def gradient_formulas(operation: TracedOperation) -> dict[str, str]:
    """`d<name>` for each differentiable argument, in terms of saved values and upstream gradients."""
    names = {s.backward: s.symbol for s in operation.saved}
    names.update({t.placeholder: f"d{t.output.symbol}" for t in operation.tangents})
    gradients: dict[fx.Node, str] = {}
    repeated: dict[str, fx.Node] = {}
    for gradient in operation.gradients:
        symbol = f"d{gradient.argument.symbol}"
        if gradient.node in gradients or gradient.node in names:
            repeated[symbol] = gradient.node
        else:
            gradients[gradient.node] = symbol
    formulas = _formulas(operation.backward.graph, names, gradients, operation.input_dtype)
    for symbol, node in repeated.items():
        formulas[symbol] = names.get(node) or gradients[node]
    return formulas


def _formulas(
    graph: fx.Graph,
    names: Mapping[fx.Node, str],
    results: Mapping[fx.Node, str],
    input_dtype: torch.dtype,
) -> dict[str, str]:
    live = _live(results)
    writer = _Writer(names, set(results.values()), input_dtype)
    for node in graph.nodes:
        if node.op != "call_function" or node not in live:
            continue
        if node in results:
            writer.name(node, results[node])
        else:
            writer.name_if_shared(node)
    for node, symbol in results.items():
        if symbol not in writer.lines:
            writer.name(node, symbol)
    return _mentioned(writer.lines, set(results.values()))


def _mentioned(lines: dict[str, str], results: set[str]) -> dict[str, str]:
    """Without shared values that a function's name has swallowed."""
    kept: dict[str, str] = {}
    words: set[str] = set()
    for symbol, text in reversed(lines.items()):
        if symbol in results or symbol in words:
            kept[symbol] = text
            words |= set(re.findall(r"\w+", text))
    return dict(reversed(kept.items()))


def _live(results: Mapping[fx.Node, str]) -> set[fx.Node]:
    live: set[fx.Node] = set()
    stack = list(results)
    while stack:
        node = stack.pop()
        if node not in live:
            live.add(node)
            stack.extend(node.all_input_nodes)
    return live
