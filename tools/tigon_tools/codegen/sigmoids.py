"""0.5 * (tanh(z) + 1), which is sigmoid(2 * z), written as that.

A kernel with tanh is limited by its instructions on a GPU, and for large negative z the sum cancels. Where the same tanh
is needed for something else as well, as in a gradient, nothing is gained.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from tigon_tools.codegen.arithmetic import Arithmetic
from tigon_tools.codegen.rewriting import rewritten
from tigon_tools.codegen.values import Value, reachable


def with_sigmoids(outputs: Sequence[Value], arithmetic: Arithmetic) -> dict[Value, Value]:
    """By each value that the outputs need, what is computed in its place."""
    users: dict[Value, list[Value]] = defaultdict(list)
    for value in reachable(outputs):
        for operand in value.operands:
            users[operand].append(value)
    replaced: dict[Value, Value] = {}
    for value in list(users):
        if value.operation != "tanh":
            continue
        halves = [half for total in users[value] for half in users[total]]
        if all(_is_one_more(total, value) for total in users[value]) and all(map(_is_half, halves)):
            doubled = arithmetic.multiply(arithmetic.constant(2), value.operands[0])
            replaced |= dict.fromkeys(halves, arithmetic.call("tl.sigmoid", doubled))
    return rewritten(outputs, replaced, arithmetic) if replaced else {}


def _is_one_more(total: Value, value: Value) -> bool:
    return total.operation == "add" and total.operands[0] is value and total.operands[1].equals(1)


def _is_half(value: Value) -> bool:
    return value.operation == "multiply" and value.operands[0].equals(0.5)
