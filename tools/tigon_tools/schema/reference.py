"""The reference: the PyTorch code that defines what is right, and the inputs it is traced with."""

from __future__ import annotations

from dataclasses import dataclass, field

Scalar = bool | int | float | str | None


@dataclass(frozen=True)
class InputSpec:
    """One argument of the reference.

    A tensor has a shape. A scalar has `shape=None` and the value it is traced with.
    `dtype` is a torch name without the prefix ("float32", "bfloat16", "int64", "bool"); for a
    scalar it is "float", "int", "bool" or "str".
    """

    name: str
    shape: tuple[int, ...] | None = None
    dtype: str = "float32"
    requires_grad: bool = True
    value: Scalar = None


@dataclass(frozen=True)
class Reference:
    """Python code and the name in it that is the reference; `code` is what gets frozen.

    code: the whole module text. It is executed on its own, so it holds all it needs.
    entry: a function, an `nn.Module` class that takes no arguments, or an `nn.Module` instance.
    origin: where it came from, for people ("file.py:name", "package.module:name", "snippet").
    module: for a dotted name, the module the text was read from (relative imports need it).
    inputs: None asks for `example_inputs()` beside the entry, then for what the signature says.
    """

    code: str
    entry: str
    origin: str = "snippet"
    module: str | None = None
    inputs: tuple[InputSpec, ...] | None = None


@dataclass(frozen=True)
class ResolveRequest:
    """Job `resolve`: turn what the assistant named into a `Reference`.

    source: a path "file.py:name", "package.module:name", or Python code.
    root: the folder that relative paths start from.
    """

    source: str
    root: str
    entry: str | None = None
    inputs: tuple[InputSpec, ...] | None = None


@dataclass(frozen=True)
class ResolveResult:
    reference: Reference


@dataclass(frozen=True)
class TraceRequest:
    """Job `trace`: the facts of a reference."""

    reference: Reference


@dataclass(frozen=True)
class InputFact:
    """One argument as traced.

    kind: "tensor", "parameter" (of an nn.Module), "buffer", "scalar" (stays an argument of the
        kernel) or "static" (a bool, a string, None, or a number that decides control flow: fixed
        at `default`, and not an argument of what is generated).
    symbol: the name in formulas and kernels (`X` for `x`, `alpha` for `alpha`).
    shape: of the traced example; None for a scalar.
    dtype: "input" where it follows the caller's dtype, else the torch name.
    broadcast: smaller than the iteration space.
    required: a scalar without a default in the reference's signature.
    axes: for each dimension its position in the iteration space, None for one of size one; None where
        it has no place in it.
    attribute: of a parameter or buffer, its name in the module ("norm.weight").
    initial: what a parameter holds when the module is made, where that is one number everywhere.
    """

    name: str
    symbol: str
    kind: str
    shape: tuple[int, ...] | None
    dtype: str
    requires_grad: bool
    broadcast: bool = False
    default: Scalar = None
    required: bool = True
    annotation: str | None = None
    axes: tuple[int | None, ...] | None = None
    attribute: str | None = None
    initial: float | None = None


@dataclass(frozen=True)
class OutputFact:
    """One output as traced; `dtype` is "input" where it follows the inputs' dtype."""

    name: str
    symbol: str
    shape: tuple[int, ...]
    dtype: str
    differentiable: bool


@dataclass(frozen=True)
class Evidence:
    """Why the tier is what it is, in the graph's own terms.

    sentence: for people; names the ops. ops: the ATen names it rests on.
    line: of the reference, 1-based, where known.
    """

    sentence: str
    ops: tuple[str, ...] = ()
    line: int | None = None


@dataclass(frozen=True)
class Facts:
    """What tracing found. Bytes and flops are for the traced shapes and dtype.

    saved_tensors: symbols that the backward needs and that the partitioner keeps.
    recomputed: symbols or op names that the backward computes again instead of keeping.
    saved_bytes, eager_saved_bytes: bytes kept for the backward, by the partitioner's choice and
        as eager autograd would keep them, both in `traced_dtype`, scalars not counted.
    min_bytes_forward, min_bytes_backward: each input read once, each output written once.
    flops_forward, flops_backward: one per element and arithmetic op, transcendental ops included.
    forward_formulas, gradient_formulas: symbol to right-hand side, as a person writes it.
    forward_ops, backward_ops: ATen op to count.
    precision_sensitive_ops: ops to compute in float32 whatever the input dtype.
    generates: whether code generation covers this graph; `generates_not_because` says why not.
    """

    tier: int
    tier_description: str
    evidence: tuple[Evidence, ...]
    closest_kernels: tuple[str, ...]
    inputs: tuple[InputFact, ...]
    outputs: tuple[OutputFact, ...]
    iteration_space: tuple[int, ...]
    saved_tensors: tuple[str, ...]
    recomputed: tuple[str, ...]
    saved_bytes: int
    eager_saved_bytes: int
    min_bytes_forward: int
    min_bytes_backward: int
    flops_forward: int
    flops_backward: int
    forward_formulas: dict[str, str]
    gradient_formulas: dict[str, str]
    forward_ops: dict[str, int]
    backward_ops: dict[str, int]
    precision_sensitive_ops: tuple[str, ...]
    traced_dtype: str
    is_module: bool
    generates: bool
    generates_not_because: str | None = None
    notes: tuple[str, ...] = ()
    torch_version: str = ""


@dataclass(frozen=True)
class TraceResult:
    reference: Reference
    facts: Facts
    forward_graph: str = ""
    backward_graph: str = ""
    warnings: tuple[str, ...] = field(default=())
