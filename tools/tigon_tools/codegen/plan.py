"""What a generated file consists of, before it is text."""

from __future__ import annotations

from dataclasses import dataclass, field

from tigon_tools.codegen.lowering import Dims
from tigon_tools.codegen.values import FloatTypes, Kind, Value, reachable


@dataclass(frozen=True)
class Tensor:
    """A tensor that a kernel reads or writes.

    types: its storage type, in terms of the launcher's arguments. added_dims: see `Lowering`.
    """

    name: str
    kind: Kind
    types: FloatTypes
    added_dims: Dims = ()

    @property
    def as_broadcast(self) -> str:
        """The argument as the launcher broadcasts it."""
        return self.name + "".join(f".unsqueeze({dim})" for dim in reversed(self.added_dims))


@dataclass(frozen=True)
class Scalar:
    """A number that stays an argument of the kernel; kind is FLOAT or INT."""

    name: str
    kind: Kind

    @property
    def annotation(self) -> str:
        return "int" if self.kind is Kind.INT else "float"


@dataclass(frozen=True)
class KernelPlan:
    """One kernel.

    outputs: what is stored, each with its value, in the order of the launcher's results.
    inputs, scalars: only those that the outputs need, in the order of the launcher's arguments.
    recomputed: values of the forward that this kernel computes again.
    """

    name: str
    outputs: tuple[tuple[Tensor, Value], ...]
    inputs: tuple[Tensor, ...]
    scalars: tuple[Scalar, ...]
    recomputed: frozenset[Value] = frozenset()

    @property
    def values(self) -> list[Value]:
        return list(reachable(value for _, value in self.outputs))


@dataclass(frozen=True)
class Gradient:
    """What the backward returns for one input.

    source: "kernel" (stored by it), "upstream" (an upstream gradient as it is), "shared" (the same as
        another input's gradient), "constant".
    upstream: the name of the upstream gradient, or of the gradient it is shared with.
    """

    tensor: Tensor
    source: str
    upstream: str = ""
    constant: float = 0.0


@dataclass(frozen=True)
class Argument:
    """One argument of `Function.forward`; scalar is None for a tensor. public_name: what the reference calls it."""

    name: str
    public_name: str
    scalar: Scalar | None = None
    default: str | None = None

    @property
    def declaration(self) -> str:
        return self.name + self._annotation()

    @property
    def public_declaration(self) -> str:
        return self.public_name + self._annotation()

    def _annotation(self) -> str:
        if self.scalar is None:
            return ""
        default = "" if self.default is None else f" = {self.default}"
        return f": {self.scalar.annotation}{default}"


@dataclass(frozen=True)
class Narrow:
    """Outputs whose shape is that of some tensors alone."""

    outputs: tuple[str, ...]
    tensors: tuple[Tensor, ...]


@dataclass(frozen=True)
class OpsPlan:
    """The whole file.

    outputs: names of the function's results, in order; non_differentiable: those without a gradient.
    intermediates: results of the forward kernel that only the backward uses.
    saved: tensors kept on ctx, in the order of the backward launcher's arguments.
    upstream: names of the upstream gradients, one an output.
    gradients: by argument; None for an argument without one.
    fixed: static arguments of the reference and the value they have here.
    shape_tensors: whose shapes together are the operation's.
    narrow: outputs that PyTorch gives the shape of some of the tensors alone, and which. A call where that is not
        the shape of all has no kernel.
    """

    operation_name: str
    function_class_name: str
    arguments: tuple[Argument, ...]
    outputs: tuple[str, ...]
    non_differentiable: tuple[str, ...]
    intermediates: tuple[str, ...]
    saved: tuple[str, ...]
    upstream: tuple[str, ...]
    gradients: tuple[Gradient | None, ...]
    forward: KernelPlan
    backward: KernelPlan
    fixed: tuple[tuple[str, str], ...] = field(default=())
    narrow: tuple[Narrow, ...] = ()
    shape_tensors: tuple[Tensor, ...] = ()

    @property
    def backward_scalars(self) -> tuple[Scalar, ...]:
        return self.backward.scalars

    @property
    def used_upstream(self) -> tuple[str, ...]:
        """Upstream gradients that some gradient depends on."""
        loaded = {tensor.name for tensor in self.backward.inputs}
        passed_on = {gradient.upstream for gradient in self.gradients if gradient is not None}
        used = tuple(name for name in self.upstream if name in loaded | passed_on)
        needs_shape = any(gradient is not None and gradient.source == "constant" for gradient in self.gradients)
        return self.upstream[:1] if needs_shape and not used else used
