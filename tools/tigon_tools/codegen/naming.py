"""Names for values: the reference's own, else what the value is.

`sigmoid_gate`, `x_squared`, `exp_x`; for gradients `d` and the name of what they are the gradient of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tigon_tools.codegen.arithmetic import COMPARISONS
from tigon_tools.codegen.known_functions import known_function
from tigon_tools.codegen.values import Value

_WORDS = {
    "clamp": "clamped",
    "negate": "neg",
    "round": "rounded",
    "rint": "rounded",
    "trunc": "truncated",
    "not": "not",
    "convert": "converted",
    "tl.div_rn": "quotient",
    "row_sum": "sum",
    "row_max": "max",
    "row_min": "min",
}
_NOUNS = {
    "add": "total",
    "subtract": "difference",
    "multiply": "product",
    "divide": "quotient",
    "where": "selected",
    "maximum": "larger",
    "minimum": "smaller",
    "and": "both",
    "or": "either",
    "xor": "one_of_both",
}
_JOINTS = {"add": "plus", "subtract": "minus", "multiply": "times", "divide": "over"}
_RELATIONS = {
    "less": "below",
    "less_equal": "at_most",
    "greater": "above",
    "greater_equal": "at_least",
    "equal": "equals",
    "not_equal": "differs_from",
}
_RELATIONS_TO_ZERO = {
    "less": "is_negative",
    "less_equal": "is_not_positive",
    "greater": "is_positive",
    "greater_equal": "is_not_negative",
    "equal": "is_zero",
    "not_equal": "is_not_zero",
}

LONGEST_NAME = 28
"""Characters; a longer name hides the formula it stands in."""


class Namer:
    """Gives each value a name of its own.

    hints: names from the reference. gradient_of: the forward value that a gradient belongs to.
    taken: names that mean something else in the kernel.
    forward: values of the forward, for a kernel of the backward; what else depends on one tensor
        alone is then a part of a derivative.
    """

    def __init__(
        self,
        hints: Mapping[Value, str],
        gradient_of: Mapping[Value, Value],
        taken: set[str],
        forward: frozenset[Value] = frozenset(),
    ) -> None:
        self._hints = hints
        self._gradient_of = gradient_of
        self._taken = set(taken)
        self._forward = forward
        self._names: dict[Value, str] = {}
        self._loads: dict[Value, frozenset[Value]] = {}

    def assign(self, value: Value, name: str) -> None:
        """A name that is given: of an argument or an output."""
        self._names[value] = name
        self._taken.add(name)

    def name(self, value: Value) -> str:
        """The value's name, made at the first call."""
        if value not in self._names:
            base = self._describe(value)
            name, number = base, 2
            while name in self._taken:
                name, number = f"{base}_{number}", number + 1
            self.assign(value, name)
        return self._names[value]

    @contextmanager
    def trial(self, value: Value) -> Iterator[None]:
        """As if the value had a name of ordinary length."""
        self._names[value] = "a_fair_name"
        try:
            yield
        finally:
            del self._names[value]

    def given(self, value: Value) -> str | None:
        return self._names.get(value)

    def has_meaning(self, value: Value) -> bool:
        """Whether the name would say more than the operation does."""
        return value in self._gradient_of or self._special_function(value) is not None

    def _describe(self, value: Value) -> str:
        if value in self._hints and value not in self._gradient_of:
            return self._hints[value]
        if value in self._gradient_of:
            return self._gradient_name(self._gradient_of[value])
        known = self._known_function(value)
        if known is not None:
            return known
        short = self._argument(value)
        if self._forward and value not in self._forward and short and value.operation in _JOINTS:
            return f"slope_{short}"
        name = self._structure(value)
        if name in _NOUNS.values() and short:
            return f"{name}_{short}"
        return name if len(name) <= LONGEST_NAME else _NOUNS.get(value.operation, _word(value.operation))

    def _gradient_name(self, forward: Value) -> str:
        name = self._names.get(forward) or self._hints.get(forward) or self._structure(forward)
        gradient = f"d_{name}" if "_" in name else f"d{name}"
        # An output that the reference also uses itself: its gradient is the upstream one and more.
        return f"{gradient}_total" if gradient in self._taken else gradient

    def _short(self, value: Value) -> str | None:
        """A name to build others from: the value's own, or that of the one tensor it depends on."""
        if value in self._names:
            return self._names[value]
        if value in self._hints:
            return self._hints[value]
        if value.operation in ("load", "scalar", "size"):
            return value.name
        if value.operation == "column_index":
            return "column"
        if value.is_constant:
            return _number(value)
        leaves = self._named_leaves(value)
        tensors = [leaf for leaf in leaves if not leaf.uniform] or leaves
        return self._short(tensors[0]) if len(tensors) == 1 else self._argument(value)

    def _named_leaves(self, value: Value) -> list[Value]:
        """What the value depends on, going down no further than to the first name."""
        found: list[Value] = []
        stack, seen = list(value.operands), set()
        while stack:
            part = stack.pop()
            if part in seen or part.is_constant:
                continue
            seen.add(part)
            if self._named(part):
                found.append(part)
            else:
                stack.extend(part.operands)
        return found

    def _structure(self, value: Value) -> str:
        operation, operands = value.operation, value.operands
        if operation in ("load", "scalar", "size"):
            return value.name
        if operation == "load_at":
            return f"picked_{value.name}"
        special = self._known_function(value)
        if special is not None:
            return special
        parts = [self._short(operand) for operand in operands]
        if operation == "where" and parts[2] and _is_half(operands[1], operands[2]):
            return f"split_{parts[2]}"
        if operation == "where" and parts[1] and operands[2].equals(0):
            return f"masked_{parts[1]}"
        if operation == "where" and parts[2] and operands[1].equals(0):
            return f"masked_{parts[2]}"
        if operation in COMPARISONS:
            return self._relation(operation, operands, parts)
        if operation in _JOINTS and all(parts) and not operands[0].is_constant:
            return f"{parts[0]}_{_JOINTS[operation]}_{parts[1]}"
        if operation in ("maximum", "minimum") and parts[0] and operands[1].uniform:
            return f"clamped_{parts[0]}"
        if operation == "and" and _is_range(*operands):
            return f"{parts[0]}_in_range"
        if operation in _NOUNS:
            return _NOUNS[operation]
        inner = parts[0] or _NOUNS.get(operands[0].operation, "argument")
        return f"{_word(operation)}_{inner}"

    def _known_function(self, value: Value) -> str | None:
        """What has a word for it, from the names of its parts."""
        special = self._special_function(value)
        if special is not None or len(value.operands) != 2:
            return special
        operation, (x, y) = value.operation, value.operands
        if operation == "multiply":
            if x.operation == "multiply" and x.operands[0] is x.operands[1] is y and self._named(y):
                return f"{self._short(y)}_cubed"
            if self._named(y):
                return f"{self._short(y)}_squared" if x is y else f"scaled_{self._short(y)}" if x.uniform else None
        if operation == "divide" and x.operation == "row_sum" and y.operation == "size":
            short = self._short(x.operands[0]) or self._argument(x)
            return f"mean_{short}" if short else None
        if operation == "divide" and x.equals(1) and self._named(y):
            return f"inverse_{self._short(y)}"
        if operation == "subtract" and x.equals(1) and self._named(y):
            return f"one_minus_{self._short(y)}"
        return None

    def _special_function(self, value: Value) -> str | None:
        """Functions of the field that are several operations."""
        known = known_function(value)
        if known is None:
            return None
        name, argument = known
        short = self._short(argument) or self._argument(argument)
        return f"{name}_{short}" if short else None

    def _named(self, value: Value) -> bool:
        return value.is_leaf or value in self._names or value in self._hints

    def _argument(self, value: Value) -> str | None:
        """The one tensor that a value is a function of, by name."""
        load = self._only_load(value)
        return None if load is None else self._names.get(load) or load.name

    def _only_load(self, value: Value) -> Value | None:
        """Kept for every value that was looked at: each is asked for many times in a long kernel."""
        stack = [value]
        while stack:
            part = stack[-1]
            waiting = [operand for operand in part.operands if operand not in self._loads]
            if waiting and part not in self._loads:
                stack += waiting
                continue
            stack.pop()
            below = frozenset().union(*(self._loads[operand] for operand in part.operands))
            # More than two are no more than two: many.
            self._loads[part] = frozenset({part}) if part.operation == "load" else frozenset(list(below)[:2])
        loads = self._loads[value]
        return next(iter(loads)) if len(loads) == 1 else None

    @staticmethod
    def _relation(operation: str, operands: tuple[Value, ...], parts: list[str | None]) -> str:
        if operands[0] is operands[1]:
            return f"{parts[0] or 'value'}_is_{'nan' if operation == 'not_equal' else 'number'}"
        if parts[0] and operands[1].equals(0):
            return f"{parts[0]}_{_RELATIONS_TO_ZERO[operation]}"
        if all(parts):
            return f"{parts[0]}_{_RELATIONS[operation]}_{parts[1]}"
        return f"is_{_RELATIONS[operation]}"


def _is_half(half: Value, whole: Value) -> bool:
    """As a gradient that two equal values share."""
    return half.operation == "divide" and half.operands[0] is whole and half.operands[1].equals(2)


def _is_range(low: Value, high: Value) -> bool:
    """Two bounds on the same value."""
    bounds = ("less", "less_equal", "greater", "greater_equal")
    return low.operation in bounds and high.operation in bounds and low.operands[0] is high.operands[0]


def _word(operation: str) -> str:
    return _WORDS.get(operation, operation.rsplit(".", 1)[-1])


def _number(value: Value) -> str:
    """A constant as part of a name: 1 for 1.0, minus_1, 0_5."""
    number = value.constant
    text = str(int(number)) if float(number).is_integer() else f"{number:g}"
    return text.replace("-", "minus_").replace(".", "_").replace("+", "")
