"""A value as PyTorch computes it in the launcher: what is left to do with the sums over rows."""

from __future__ import annotations

from collections.abc import Mapping

from tigon_tools.codegen.expression import Expressions
from tigon_tools.codegen.launcher import dtype_expression
from tigon_tools.codegen.row_expression import ATOM
from tigon_tools.codegen.row_plan import RowKernelPlan
from tigon_tools.codegen.unsupported import Unsupported
from tigon_tools.codegen.values import Value
from tigon_tools.codegen.vectors import VECTOR


class HostExpressions(Expressions):
    """Prints values of the launcher. made: sums over rows that have been given a name by now."""

    def __init__(self, kernel: RowKernelPlan, made: Mapping[Value, str]) -> None:
        super().__init__(self._known, lambda value: dtype_expression(value.types))
        self._kernel = kernel
        self._made = made

    def _known(self, value: Value) -> str | None:
        if value in self._made:
            return self._made[value]
        name = self._kernel.sums.get(value)
        if name is None:
            return None
        whole = name not in self._kernel.partial or name in self._kernel.everything
        return f"{name}.sum()" if whole else f"{name}.sum(dim=0)"

    def text(self, value: Value) -> str:
        return self._known(value) or super().text(value)

    def _divisor(self, value: Value, text: str) -> str:
        return text

    def _define(self, value: Value) -> tuple[str, int]:
        if value.operation == "load":
            return f"{super()._define(value)[0]}.float()", ATOM
        if value.operation == VECTOR:
            if any(operand.is_constant for operand in value.operands):
                raise Unsupported("an element of a small vector that the operation does not use.")
            return f"torch.stack(({', '.join(self._operand(operand, 0) for operand in value.operands)}))", ATOM
        if value.operation == "round":
            return f"{self._operand(value.operands[0], ATOM)}.to({self._pointer_type(value)}).float()", ATOM
        if value.operation == "convert":
            return self._operand(value.operands[0], ATOM), ATOM
        return super()._define(value)

    def _call(self, value: Value) -> str:
        if value.operation in _BOUNDS and any(operand.is_constant for operand in value.operands):
            bound, bounded = sorted(value.operands, key=lambda operand: not operand.is_constant)
            return f"{self._operand(bounded, ATOM)}.clamp({_BOUNDS[value.operation]}={self._operand(bound, 0)})"
        name = f"torch.{value.operation.removeprefix('tl.')}"
        if value.operation.removeprefix("tl.") not in _TORCH:
            raise Unsupported(f"{value.operation} of a sum over rows.")
        return f"{name}({', '.join(self._operand(operand, 0) for operand in value.operands)})"


_TORCH = frozenset("where exp log sqrt rsqrt abs tanh sigmoid relu clamp maximum minimum".split())
"""Functions that PyTorch has under the name they have here."""

_BOUNDS = {"maximum": "min", "minimum": "max"}
"""PyTorch's maximum takes no number; the parameter of `clamp` that does the same."""
