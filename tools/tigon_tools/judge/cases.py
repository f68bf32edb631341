"""The cases a candidate is tried on: shapes, dtypes, layouts, values, upstream gradients that hurt.

Derived from the reference's own arguments: which dimensions are the iteration space, what broadcasts.
Sizes are chosen for the interpreter, where a program costs milliseconds and an element next to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tigon_tools.trace.axes import axes_of, resized
from tigon_tools.trace.operation import TracedOperation

DTYPES = ("float32", "float16", "bfloat16")

Shape = tuple[int, ...]

# Each shape of (rows, columns) and why it is here.
SHAPES: tuple[tuple[int, int, str], ...] = (
    (7, 33, "odd"),
    (1, 257, "one row, just past a power of two"),
    (5, 1, "one column"),
    (3, 127, "just under a power of two"),
    (2, 128, "a power of two"),
    (13, 31, "prime"),
    (2, 4097, "past one block"),
    (1, 70001, "one row past 65536"),
    (0, 64, "zero rows"),
)
SHAPES_OF_HALVES = ((7, 33), (2, 4097))
"""For the 16-bit dtypes: an odd one, and one with enough elements for rare roundings."""

LAYOUT_SHAPE = (6, 40)
"""Rows and columns for layouts: neither divides a block, and a transposed read stays in the storage."""

LAYOUTS: tuple[tuple[str, ...], ...] = (
    ("halves",),
    ("transposed",),
    ("offset",),
    ("alternate",),
    ("expanded",),
    ("halves", "contiguous"),
    ("contiguous", "halves"),
)
LAYOUTS_OF_ROWS: tuple[tuple[str, ...], ...] = (("offset",), ("alternate",), ("alternate", "contiguous"))
"""Where there is one dimension only."""

GIVEN_ELEMENTS = 2**20
GIVEN_ROWS = 64
"""The traced shape is judged as it is up to here; the interpreter takes about a second for as much."""


LARGEST_BRANCH = 1000.0
"""A constant beyond it is no branch of a function of values about 1."""


@dataclass(frozen=True)
class Case:
    """One call of the candidate.

    space: the iteration space's shape. layouts: of each tensor argument in turn, repeated as needed.
    values: "normal", "large", "branches", or "special" (NaN and infinities).
    upstream: "random", "expanded" (stride 0, as `.sum().backward()` makes it) or "split" (a strided view).
    settings: which values the scalars have: "default" or "other".
    wants: names of inputs that require a gradient; None for all that can.
    backed: how many of the differentiable outputs, from the first, get an upstream gradient; None for all.
    """

    space: Shape
    dtype: str = "float32"
    layouts: tuple[str, ...] = ("contiguous",)
    values: str = "normal"
    upstream: str = "random"
    settings: str = "default"
    wants: tuple[str, ...] | None = None
    backed: int | None = None
    why: str = ""
    seed: int = 0

    @property
    def label(self) -> str:
        """As a person would say it."""
        parts = [self.dtype, str(self.space)]
        if self.layouts != ("contiguous",):
            parts.append(" and ".join(self.layouts) + " inputs")
        if self.values != "normal":
            parts.append(f"{self.values} values")
        if self.upstream != "random":
            parts.append(f"{self.upstream} upstream gradient")
        if self.settings != "default":
            parts.append("other scalars")
        if self.wants is not None:
            parts.append(f"gradient for {', '.join(self.wants)} only")
        if self.backed is not None:
            parts.append("upstream gradient for the first output only")
        return " ".join(parts)


@dataclass(frozen=True)
class Plan:
    """Which cases an operation gets. dtypes: those asked for."""

    operation: TracedOperation
    dtypes: tuple[str, ...]
    seed: int
    _counter: list[int] = field(default_factory=lambda: [0])

    def __iter__(self) -> Iterator[Case]:
        """Cheap and telling cases first."""
        for number, case in enumerate(self._all()):
            yield replace(case, seed=self.seed * 10007 + number)

    def _all(self) -> Iterator[Case]:
        main, *others = self.dtypes
        yield Case(self.given(), main, why="as given")
        yield from self._shapes(main)
        for dtype in others:
            for rows, columns in SHAPES_OF_HALVES:
                yield Case(self.shape(rows, columns), dtype)
        yield from self._layouts(main)
        if others:
            yield from self._layouts(others[-1], only=("halves",))
        yield from self._upstream(main)
        for dtype in self.dtypes:
            for values in ("large", "branches"):
                yield Case(self.shape(7, 33), dtype, values=values)
        if self.operation.scalars:
            for dtype in self.dtypes:
                yield Case(self.shape(7, 33), dtype, settings="other")
        yield from self._subsets(main)
        yield Case(self.shape(3, 127), main, values="special", why="NaN and infinities")

    def _shapes(self, dtype: str) -> Iterator[Case]:
        for rows, columns, why in SHAPES:
            yield Case(self.shape(rows, columns), dtype, why=why)

    def _layouts(self, dtype: str, only: tuple[str, ...] | None = None) -> Iterator[Case]:
        space = self.shape(*LAYOUT_SHAPE)
        several = len(self.operation.tensors) > 1
        for layout in LAYOUTS if len(space) > 1 else LAYOUTS_OF_ROWS:
            if len(layout) > 1 and not several:
                continue
            if only is None or layout == only:
                yield Case(space, dtype, layout)

    def _upstream(self, dtype: str) -> Iterator[Case]:
        space = self.shape(*LAYOUT_SHAPE)
        yield Case(space, dtype, upstream="expanded")
        yield Case(space, dtype, upstream="split")

    def _subsets(self, dtype: str) -> Iterator[Case]:
        names = [a.name for a in self.operation.arguments if a.requires_grad]
        if len(names) > 1:
            for name in names:
                yield Case(self.shape(7, 33), dtype, wants=(name,))
        if sum(o.differentiable for o in self.operation.outputs) > 1:
            yield Case(self.shape(7, 33), dtype, backed=1)

    def given(self) -> Shape:
        """The traced shape, made smaller where that would take too long."""
        space = self.operation.iteration_space
        rows = math.prod(space[:-1])
        if rows <= GIVEN_ROWS and rows * math.prod(space[-1:]) <= GIVEN_ELEMENTS:
            return space
        leading = tuple(min(size, 2) for size in space[:-1])
        return (*leading, *(min(size, 4096) for size in space[-1:]))

    def shape(self, rows: int, columns: int) -> Shape:
        """Rows and columns as the operation's rank has them; an even number of rows is two batches."""
        rank = len(self.operation.iteration_space)
        if rank == 0:
            return ()
        if rank == 1:
            return (rows * columns,)
        if rank > 2 and rows > 2 and rows % 2 == 0:
            return (1,) * (rank - 3) + (2, rows // 2, columns)
        return (1,) * (rank - 2) + (rows, columns)


def argument_shape(own: Shape, dtype: str, traced_space: Shape, space: Shape) -> Shape:
    """An argument's shape in another iteration space: what broadcast still does."""
    return resized(own, axes_of(own, traced_space, dtype), space)


def scalar_values(operation: TracedOperation, traced: Mapping[str, object], settings: str) -> dict[str, float | int]:
    """Values for the scalars: as traced, or "other": of the same sign, larger, and each by its own amount.

    The amount added keeps a small `eps` from hiding: 1e-6 becomes 0.27.
    """
    values: dict[str, float | int] = {}
    for position, argument in enumerate(operation.scalars):
        value = traced[argument.name]
        assert isinstance(value, (int, float))
        if settings == "default":
            values[argument.name] = value
        elif argument.dtype == "int":
            values[argument.name] = value + 1
        else:
            values[argument.name] = math.copysign(abs(value) * 1.5 + 0.27 + 0.11 * position, value)
    return values


def branch_points(operation: TracedOperation, scalars: Mapping[str, float | int]) -> tuple[float, ...]:
    """Where the operation may change its branch: its own constants and scalars, and their negatives."""
    found: list[float] = [float(value) for value in scalars.values()]
    for node in operation.forward.graph.nodes:
        found += [float(a) for a in node.args if isinstance(a, (int, float)) and not isinstance(a, bool)]
    near = sorted({abs(value) for value in found if abs(value) <= LARGEST_BRANCH})
    return tuple(signed for value in near for signed in (value, -value))
