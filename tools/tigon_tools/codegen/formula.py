"""The maths of a kernel, for its docstring: one line a result, in terms of the arguments.

Functions of the field are written by name (`silu(gate_multiplier * a) * b`). What a formula uses
several times, or what would make it long, is a line of its own after the results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from tigon_tools.codegen.constants import NAMED_CONSTANTS
from tigon_tools.codegen.expression import Expressions
from tigon_tools.codegen.known_functions import known_function
from tigon_tools.codegen.naming import Namer
from tigon_tools.codegen.plan import KernelPlan
from tigon_tools.codegen.values import Kind, Value, reachable

LONGEST_FORMULA = 100
"""Characters; beyond it a formula explains less than the code under it."""


MOST_VALUES = 200
"""Of a kernel; its formulas have no chance to fit, and printing them follows the operations by recursion."""


class _Maths(Expressions):
    """Functions by their mathematical names, no types, no NaN rules."""

    def _define(self, value: Value) -> tuple[str, int]:
        atom = 8
        known = known_function(value)
        if known is not None and known[0] not in ("pdf", "cdf"):
            return f"{known[0]}({self._operand(known[1], 0)})", atom
        power = _power(value)
        if power is not None:
            return f"{self._operand(power[0], atom)}**{power[1]}", atom
        mean = _mean(value)
        if mean is not None:
            return f"mean({self._operand(mean, 0)})", atom
        if value.operation == "load_at":
            return f"{value.name}[{self._operand(value.operands[0], 0)}]", atom
        if value.operation == "column_index":
            return "column", atom
        if value.operation == "convert" and value.kind is Kind.FLOAT:
            return self._operand(value.operands[0], 0), atom
        if value.operation == "round":
            return f"{self._operand(value.operands[0], atom)}.to({self._pointer_type(value)})", atom
        return super()._define(value)

    @staticmethod
    def _constant(value: Value, argument: bool) -> tuple[str, int]:
        if value.constant not in NAMED_CONSTANTS:
            return Expressions._constant(value, argument=False)
        meaning = NAMED_CONSTANTS[value.constant][1]
        product, atom = 6, 8
        return meaning, atom if meaning[0].isalpha() else product

    def _divisor(self, value: Value, text: str) -> str:
        return text

    def _call(self, value: Value) -> str:
        arguments = ", ".join(self._operand(operand, 0) for operand in value.operands)
        name = _CALLED.get(value.operation, value.operation.removeprefix("tl."))
        return f"{name}({arguments})"


_CALLED = {"maximum": "max", "minimum": "min", "row_sum": "sum", "row_max": "max", "row_min": "min"}


def _mean(value: Value) -> Value | None:
    """What is averaged over the row."""
    if value.operation != "divide" or value.operands[0].operation != "row_sum":
        return None
    by_columns = value.operands[1].operation == "size" and value.operands[1].name == "n_cols"
    return value.operands[0].operands[0] if by_columns else None


def formulas(plan: KernelPlan, names: Namer, summed: Collection[str] = ()) -> list[str]:
    """Lines such as "c = silu(a) * b".

    Where a result is too long for a line, it is in terms of what the code under it names; where that is
    too long as well, there is nothing to say that the code does not.

    names: of the kernel's arguments and values, so that docstring and code speak of the same things.
    summed: outputs that a value is added to, row by row ("dw += dy * x").
    """
    results = {
        value: f"{tensor.name} +" if tensor.name in summed else f"{names.name(value)} "
        for tensor, value in plan.outputs
        if not value.is_leaf or tensor.name in summed
    }
    if len(plan.values) > MOST_VALUES:
        return []
    leaves = {v for v in plan.values if v.operation in ("load", "scalar")}
    shown: dict[Value, str] = {}

    def argument_or_shown(value: Value) -> str | None:
        return names.given(value) if value in leaves else shown.get(value)

    maths = _Maths(argument_or_shown, lambda value: "dtype")
    for value in _shared_arithmetic(plan, results):
        shown[value] = names.name(value)
    lines = [f"{results[value]}= {maths.text(value)}" for value in results]
    lines += [f"    where {shown[value]} = {maths.text(value)}" for value in shown]
    if not _fits(lines):
        maths = _Maths(lambda v: None if v.is_constant else names.given(v), lambda value: "dtype")
        lines = [f"{results[value]}= {maths.text(value)}" for value in results]
    return lines if _fits(lines) else []


def _fits(lines: list[str]) -> bool:
    return all(len(line) <= LONGEST_FORMULA for line in lines)


def _shared_arithmetic(plan: KernelPlan, results: dict[Value, str]) -> list[Value]:
    """Values that several places use, as far as a formula still shows them."""
    visible = _visible(results)
    uses = Counter(operand for value in visible for operand in _arguments(value))
    return [
        value
        for value in reachable(results)
        if value in visible and uses[value] > 1 and not value.is_leaf and value not in results
    ]


def _visible(results: dict[Value, str]) -> set[Value]:
    found: set[Value] = set()
    stack = list(results)
    while stack:
        value = stack.pop()
        if value not in found:
            found.add(value)
            stack.extend(_arguments(value))
    return found


def _arguments(value: Value) -> tuple[Value, ...]:
    """What the written form of a value mentions."""
    known = known_function(value)
    if known is not None and known[0] not in ("pdf", "cdf"):
        return (known[1],)
    power, mean = _power(value), _mean(value)
    if mean is not None:
        return (mean,)
    return value.operands if power is None else (power[0],)


def _power(value: Value) -> tuple[Value, int] | None:
    """x * x and x * x * x."""
    if value.operation != "multiply":
        return None
    x, y = value.operands
    if x is y:
        return x, 2
    is_cube = x.operation == "multiply" and x.operands[0] is x.operands[1] is y
    return (y, 3) if is_cube else None
