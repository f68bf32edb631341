"""A traced operation: what tracing hands to facts, formulas and code generation.

Invariants:
- `forward` and `backward` are fx graphs of core ATen ops, traced in `input_dtype` on fake tensors;
  every node has `meta["val"]`.
- A Python scalar of the reference is a 0-dim placeholder (float64 or int64), so it stays symbolic.
- Casts that the reference's author wrote have `meta["tigon_explicit_cast"]`; all others are promotion.
- A value that only scalars decide is never saved: the backward computes it again from the scalars.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import fx

EXPLICIT_CAST = "tigon_explicit_cast"
"""Key in `fx.Node.meta` of a cast that stands in the reference's own code."""


@dataclass(frozen=True)
class Argument:
    """One argument of the reference, in the order of its signature.

    kind: "tensor", "parameter", "buffer", "scalar" or "static" (see `schema.reference.InputFact`).
    placeholder: in the forward graph; None for a static argument.
    dtype: "input" where it follows the caller's dtype, else a torch name; for scalars "float" or "int".
    default: of a scalar or static argument; `required` says whether the reference has one.
    """

    name: str
    symbol: str
    kind: str
    placeholder: fx.Node | None
    shape: tuple[int, ...] | None
    dtype: str
    requires_grad: bool
    default: bool | int | float | str | None = None
    required: bool = True
    annotation: str | None = None


@dataclass(frozen=True)
class Output:
    """One output; `node` is in the forward graph. dtype: "input" or a torch name."""

    name: str
    symbol: str
    node: fx.Node
    shape: tuple[int, ...]
    dtype: str
    differentiable: bool


@dataclass(frozen=True)
class Saved:
    """A value the backward gets from the forward.

    forward: the node in the forward graph (a placeholder for kinds "input" and "scalar").
    backward: its placeholder in the backward graph.
    kind: "input", "output", "intermediate" or "scalar".
    """

    symbol: str
    kind: str
    forward: fx.Node
    backward: fx.Node


@dataclass(frozen=True)
class Tangent:
    """The upstream gradient of an output: a placeholder of the backward graph."""

    output: Output
    placeholder: fx.Node


@dataclass(frozen=True)
class Gradient:
    """The gradient of an argument: a node of the backward graph."""

    argument: Argument
    node: fx.Node


@dataclass(frozen=True)
class TracedOperation:
    """See the module's docstring.

    iteration_space: the broadcast shape of all tensor arguments and outputs, as traced.
    source: the reference's text; `entry_line` the 1-based line where the entry starts.
    """

    forward: fx.GraphModule
    backward: fx.GraphModule
    arguments: tuple[Argument, ...]
    outputs: tuple[Output, ...]
    saved: tuple[Saved, ...]
    tangents: tuple[Tangent, ...]
    gradients: tuple[Gradient, ...]
    input_dtype: torch.dtype
    iteration_space: tuple[int, ...]
    is_module: bool
    source: str
    entry: str
    notes: tuple[str, ...] = ()

    @property
    def tensors(self) -> tuple[Argument, ...]:
        """Arguments that are tensors: inputs, parameters and buffers."""
        return tuple(a for a in self.arguments if a.kind in ("tensor", "parameter", "buffer"))

    @property
    def scalars(self) -> tuple[Argument, ...]:
        return tuple(a for a in self.arguments if a.kind == "scalar")
