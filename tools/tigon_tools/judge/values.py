"""Input values: random by kind, deterministic by seed."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tigon_tools.judge.cases import Case
from tigon_tools.judge.layouts import strides_of
from tigon_tools.trace.operation import Argument

LARGE = {"float16": 200.0, "bfloat16": 200.0, "float32": 200.0, "float64": 200.0}
"""Standard deviation of "large" values: squares and cubes overflow float16, sums and products with one do not."""

BRANCHES = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 6.0, -6.0, 20.0, -20.0, 1e-4, -1e-4)
"""Where point-wise functions change their branch: 0, the ends of hard functions, softplus's threshold."""

SPECIAL = (float("nan"), float("inf"), float("-inf"), 0.0, 1.0, -1.0)


def argument_values(
    argument: Argument, shape: tuple[int, ...], case: Case, position: int, branches: Sequence[float] = ()
) -> torch.Tensor:
    """The values of one tensor argument, contiguous, in the case's dtype.

    branches: where the operation itself changes its branch.
    Where the layout repeats elements (stride 0), so do the values.
    """
    generator = torch.Generator().manual_seed(case.seed * 1009 + position)
    dtype = _dtype(argument, case)
    if dtype is torch.bool:
        values = torch.rand(shape, generator=generator) > 0.5
    elif not dtype.is_floating_point:
        values = torch.randint(0, 4, shape, generator=generator, dtype=dtype)
    else:
        values = _floats(shape, case, generator, branches).to(dtype)
    layout = layout_of(case, position)
    strides = strides_of(shape, layout)
    if layout == "expanded" and values.numel():
        for dim, stride in enumerate(strides):
            if stride == 0:
                values = values.narrow(dim, 0, 1).expand(shape).contiguous()
    return values


def layout_of(case: Case, position: int) -> str:
    """Of the tensor argument at a position."""
    return case.layouts[position % len(case.layouts)]


def upstream_values(shape: tuple[int, ...], dtype: torch.dtype, case: Case, position: int) -> torch.Tensor:
    """The upstream gradient of one output; the same everywhere where it is expanded."""
    generator = torch.Generator().manual_seed(case.seed * 2003 + 17 + position)
    if case.upstream == "expanded":
        return torch.full(shape, 1.0, dtype=dtype)
    return torch.randn(shape, generator=generator).to(dtype)


def upstream_strides(shape: tuple[int, ...], case: Case) -> tuple[int, ...]:
    """All 0 for an expanded gradient; rows of something wider (or every other element) for a split one."""
    if case.upstream == "expanded":
        return (0,) * len(shape)
    if case.upstream == "split":
        return strides_of(shape, "halves" if len(shape) > 1 else "alternate")
    return strides_of(shape, "contiguous")


def _dtype(argument: Argument, case: Case) -> torch.dtype:
    name = case.dtype if argument.dtype == "input" else argument.dtype
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def _floats(shape: tuple[int, ...], case: Case, generator: torch.Generator, branches: Sequence[float]) -> torch.Tensor:
    normal = torch.randn(shape, generator=generator)
    if case.values == "large":
        return normal * LARGE[case.dtype]
    if case.values in ("branches", "special"):
        chosen = torch.tensor((*BRANCHES, *branches) if case.values == "branches" else SPECIAL)
        picks = chosen[torch.randint(0, len(chosen), shape, generator=generator)]
        use = torch.rand(shape, generator=generator) < 0.5
        return torch.where(use, picks, normal)
    return normal
