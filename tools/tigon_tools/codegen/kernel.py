"""The text of one Triton kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from tigon_tools.codegen.constants import NAMED_CONSTANTS
from tigon_tools.codegen.expression import PROPAGATE_NAN, Expressions
from tigon_tools.codegen.formula import formulas
from tigon_tools.codegen.naming import Namer
from tigon_tools.codegen.plan import KernelPlan, Scalar, Tensor
from tigon_tools.codegen.point_ops import LIBDEVICE
from tigon_tools.codegen.unsupported import Unsupported
from tigon_tools.codegen.values import Kind, Value, reachable

LONGEST_LINE = 88
LONGEST_DEEP_LINE = 72
DEEPEST_NESTING = 3
"""Characters of a statement, and levels of parentheses; a statement that is as deep has to be shorter.
A formula is read in one glance or not at all."""

DEEPEST_TREE = 24
"""Operations inside one another before a value gets a name whatever it is: printing follows them by recursion."""

SHORTEST_PART = 16
"""Characters of a function call that is worth a line of its own."""

OWN_NAMES = frozenset({"tl", "triton", "program_id", "tiles_per_row", "row_idx", "col_offsets", "n_cols", "float"})
"""Names that a kernel uses for itself, the column mask aside."""


class KernelText:
    """Writes a `KernelPlan` down.

    own_names: that the kernel uses for itself. other_mask: what the mask is called where an argument is `mask`.
    """

    own_names = OWN_NAMES
    other_mask = "col_mask"

    def __init__(self, plan: KernelPlan, hints: Mapping[Value, str], gradient_of: Mapping[Value, Value]) -> None:
        self._plan = plan
        arguments = {tensor.name for tensor in plan.inputs} | {scalar.name for scalar in plan.scalars}
        self._mask = self.other_mask if "mask" in arguments else "mask"
        pointers = {name for tensor in self._tensors() for name in _pointer_and_stride(tensor)}
        taken = {*self.own_names, *LIBDEVICE, self._mask, *pointers}
        self._names = Namer(hints, gradient_of, taken, plan.recomputed)
        self._expressions = self._new_expressions()
        self._hints = hints

    def _new_expressions(self) -> Expressions:
        return Expressions(self._names.given, self._pointer_type)

    def lines(self) -> list[str]:
        """The whole function, decorator included."""
        code = [*self._position(), "", *self._loads(), *self._computation(), "", *self._stores()]
        return self._function(self._plan.name, code)

    def _function(self, name: str, code: list[str]) -> list[str]:
        """A kernel around its code; the docstring comes last, when values have their names."""
        body = [*self._docstring(), *code]
        return [
            "@triton.jit",
            f"def {name}(",
            *(f"    {parameter}," for parameter in self._parameters()),
            "):",
            *(f"    {line}" if line else "" for line in body),
        ]

    def functions(self) -> set[str]:
        """libdevice functions that the kernel calls."""
        return {value.operation for value in self._plan.values} & LIBDEVICE

    def _tensors(self) -> list[Tensor]:
        return [*(tensor for tensor, _ in self._plan.outputs), *self._plan.inputs]

    def _parameters(self) -> list[str]:
        pointers = [name for t in self._tensors() for name in _pointer_and_stride(t)]
        return [*pointers, *(s.name for s in self._plan.scalars), "n_cols", "BLOCK_SIZE: tl.constexpr"]

    def _docstring(self) -> list[str]:
        lines = formulas(self._plan, self._names, self._summed())
        return ['"""', *lines, '"""'] if lines else []

    def _summed(self) -> Collection[str]:
        """Outputs that are sums over the rows of one program; a point-wise kernel has none."""
        return ()

    def _position(self) -> list[str]:
        return [
            "# one program computes BLOCK_SIZE columns of one row",
            "program_id = tl.program_id(0).to(tl.int64)",
            "tiles_per_row = tl.cdiv(n_cols, BLOCK_SIZE)",
            "row_idx = program_id // tiles_per_row",
            "col_offsets = (program_id % tiles_per_row) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)",
            f"{self._mask} = col_offsets < n_cols",
            "",
            *(f"{t.name}_ptr += row_idx * {t.name}_row_stride" for t in self._tensors()),
        ]

    def _kernel_scalars(self) -> Sequence[Scalar]:
        """Numbers that the kernel is given."""
        return self._plan.scalars

    def _scalars(self) -> list[str]:
        lines = []
        values = {value.name: value for value in self._plan.values if value.operation == "scalar"}
        for scalar in self._kernel_scalars():
            self._names.assign(values[scalar.name], scalar.name)
            if scalar.kind is Kind.FLOAT:
                lines.append(f"{scalar.name} = {scalar.name}.to(tl.float32)")
        return lines

    def _loads(self) -> list[str]:
        lines = self._scalars()
        values = {value.name: value for value in self._plan.values if value.operation == "load"}
        for tensor in self._plan.inputs:
            value = values[tensor.name]
            name = self._value_name(tensor)
            self._names.assign(value, name)
            cast = ".to(tl.float32)" if value.kind is Kind.FLOAT else ""
            lines.append(f"{name} = tl.load({tensor.name}_ptr + col_offsets, mask={self._mask}, other=0){cast}")
        return lines

    def _value_name(self, tensor: Tensor) -> str:
        """What is loaded from or stored to `X_ptr` is `x`."""
        names = {t.name for t in self._tensors()} | {s.name for s in self._plan.scalars}
        lower = tensor.name.lower()
        return tensor.name if lower in names else lower

    def _computation(self) -> list[str]:
        self._name_outputs()
        constants = self._name_constants()
        named = self._worth_a_name()
        self._cut_deep_trees(named)
        self._shorten(named)
        order = [value for value in self._plan.values if value in named]
        recomputed = [value for value in order if value in self._plan.recomputed]
        lines = ["", *constants] if constants else [""]
        if recomputed:
            lines += ["# recomputed: cheaper than saving it for the backward", *map(self._statement, recomputed)]
        rest = [value for value in order if value not in self._plan.recomputed]
        if recomputed and rest:
            lines.append("")
        return lines + [self._statement(value) for value in rest]

    def _name_outputs(self) -> None:
        for tensor, value in self._plan.outputs:
            if not value.is_leaf and self._names.given(value) is None:
                self._names.assign(value, self._value_name(tensor))

    def _statement(self, value: Value) -> str:
        return f"{self._names.name(value)} = {self._expressions.text(value)}"

    def _name_constants(self) -> list[str]:
        lines = []
        for value in self._plan.values:
            if value.is_constant and value.constant in NAMED_CONSTANTS:
                name, meaning = NAMED_CONSTANTS[value.constant]
                self._names.assign(value, name)
                lines.append(f"{name} = {value.constant!r}  # {meaning}")
        return lines

    def _worth_a_name(self) -> set[Value]:
        """Values used more than once, values that the reference names, and what is stored."""
        uses = Counter(operand for value in self._plan.values for operand in value.operands)
        stored = {value for _, value in self._plan.outputs}
        named = {
            value
            for value in self._plan.values
            if not value.is_leaf and (uses[value] > 1 or value in self._hints or value in stored)
        }
        for value in self._plan.values:  # operands first, so that names build on names
            if value in named:
                self._names.name(value)
        return named

    def _cut_deep_trees(self, named: set[Value]) -> None:
        depths: dict[Value, int] = {}
        for value in self._plan.values:  # operands first
            if value in named or value.is_leaf:
                depths[value] = 0
                continue
            depths[value] = 1 + max(depths[operand] for operand in value.operands)
            if depths[value] > DEEPEST_TREE:
                named.add(value)
                self._names.name(value)
                depths[value] = 0

    def _shorten(self, named: set[Value]) -> None:
        """Gives names to parts of formulas that are too long or too deep."""
        waiting = [value for value in self._plan.values if value in named]
        while waiting:
            value = waiting.pop()
            parts = self._unnamed_parts(value, named)
            if parts and self._is_too_much(self._statement(value)):
                part = self._best_part(value, parts)
                named.add(part)
                self._names.name(part)
                waiting += [value, part]

    def _best_part(self, value: Value, parts: list[Value]) -> Value:
        """Best a part that leaves two readable lines, has a meaning of its own, and halves the formula."""
        half = len(self._expressions.text(value)) / 2

        def rank(part: Value) -> tuple[bool, int, float]:
            text = self._expressions.text(part)
            meaning = 0
            if len(text) >= SHORTEST_PART:
                meaning = 2 if self._names.has_meaning(part) else int(_is_function(part))
            with self._names.trial(part):
                still_too_much = self._is_too_much(self._statement(value))
            still_too_much |= self._is_too_much(f"a_fair_name = {text}")
            return (still_too_much, -meaning, abs(len(text) - half))

        return min(parts, key=rank)

    @staticmethod
    def _is_too_much(statement: str) -> bool:
        statement = statement.replace(PROPAGATE_NAN, "nan")  # read as one word
        depth = deepest = 0
        for character in statement:
            depth += (character == "(") - (character == ")")
            deepest = max(deepest, depth)
        if deepest > DEEPEST_NESTING:
            return True
        return len(statement) > (LONGEST_LINE if deepest < DEEPEST_NESTING else LONGEST_DEEP_LINE)

    def _unnamed_parts(self, value: Value, named: set[Value]) -> list[Value]:
        parts, stack = [], list(value.operands)
        while stack:
            part = stack.pop()
            if not part.is_leaf and part not in named:
                parts.append(part)
                stack.extend(part.operands)
        return parts

    def _stores(self) -> list[str]:
        lines = []
        for tensor, value in self._plan.outputs:
            # The store itself rounds to the type of the pointer.
            text = self._names.given(value) or self._expressions.text(value)
            lines.append(f"tl.store({tensor.name}_ptr + col_offsets, {text}, mask={self._mask})")
        return lines

    def _pointer_type(self, value: Value) -> str:
        """Where the kernel finds the storage type that a `round` value rounds to."""
        for tensor in (*self._plan.inputs, *(tensor for tensor, _ in self._plan.outputs)):
            if tensor.types == value.types:
                return f"{tensor.name}_ptr.dtype.element_ty"
        if len(value.types) == 1 and next(iter(value.types)) in ("float16", "bfloat16"):
            return f"tl.{next(iter(value.types))}"
        raise Unsupported(
            f"a cast to the dtype of {' and '.join(sorted(value.types))} in {self._plan.name}, "
            "which has no tensor of that dtype."
        )


def _pointer_and_stride(tensor: Tensor) -> tuple[str, str]:
    return f"{tensor.name}_ptr", f"{tensor.name}_row_stride"


def _is_function(value: Value) -> bool:
    return value.operation in LIBDEVICE or value.operation.startswith("tl.")


def loads_of(outputs: list[Value]) -> list[str]:
    """Names of the tensors that the outputs are computed from."""
    return [value.name for value in reachable(outputs) if value.operation == "load"]
