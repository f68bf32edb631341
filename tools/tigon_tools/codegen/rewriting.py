"""The same values of other operands, as simple as they can then be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tigon_tools.codegen.arithmetic import Arithmetic
from tigon_tools.codegen.values import Value, reachable


def with_operands(value: Value, operands: tuple[Value, ...], arithmetic: Arithmetic) -> Value:
    """A value's operation of these operands; the value itself where they are its own."""
    if all(new is old for new, old in zip(operands, value.operands, strict=True)):
        return value
    rules: dict[str, Callable[..., Value]] = {
        "add": arithmetic.add,
        "subtract": arithmetic.subtract,
        "multiply": arithmetic.multiply,
        "divide": arithmetic.divide,
        "negate": arithmetic.negate,
        "where": arithmetic.where,
    }
    if value.operation in rules:
        return rules[value.operation](*operands)
    return arithmetic.values.remade(value, operands)


def rewritten(outputs: Sequence[Value], replaced: Mapping[Value, Value], arithmetic: Arithmetic) -> dict[Value, Value]:
    """By each value that the outputs need, what it is with others in the place of some."""
    known = dict(replaced)
    for value in reachable(outputs):
        if value not in known:
            known[value] = with_operands(value, tuple(known[operand] for operand in value.operands), arithmetic)
    return known
