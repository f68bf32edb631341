"""What the failing cases have in common and the passing ones have not."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tigon_tools.judge.cases import Case

SIXTEEN_BITS = {"float16", "bfloat16"}


def is_plain(case: Case) -> bool:
    """Contiguous inputs and upstream gradients."""
    return case.layouts == ("contiguous",) and case.upstream == "random"


def pattern_of(failing: Sequence[Case], passing: Sequence[Case]) -> str:
    """A clause such as "only in float16: ...", "" where there is no pattern."""
    if not failing or not passing:
        return ""
    if not any(is_plain(case) for case in failing) and any(is_plain(case) for case in passing):
        where = ", ".join(sorted({_layout(case) for case in failing}))
        return f"only with {where}: a stride is ignored"
    by_dtype = _by_dtype(failing, passing)
    if by_dtype:
        return by_dtype
    for tells, clause in _TELLS:
        if all(tells(case) for case in failing) and not any(tells(case) for case in passing):
            return clause
    return _by_length(failing, passing)


def _by_dtype(failing: Sequence[Case], passing: Sequence[Case]) -> str:
    dtypes = {case.dtype for case in failing}
    if not dtypes <= SIXTEEN_BITS or not any(case.dtype not in dtypes for case in passing):
        return ""
    if dtypes == {"float16"}:
        return "only in float16: a value leaves its range, or is not computed in float32"
    return f"only in {' and '.join(sorted(dtypes))}: not computed in float32"


def _by_length(failing: Sequence[Case], passing: Sequence[Case]) -> str:
    shortest = min(_columns(case) for case in failing)
    longest = max(_columns(case) for case in passing)
    return f"only with rows longer than {longest}" if shortest > longest else ""


def _columns(case: Case) -> int:
    return case.space[-1] if case.space else 1


def _rows(case: Case) -> int:
    return math.prod(case.space[:-1])


def _past_a_power(case: Case) -> bool:
    columns = _columns(case)
    return columns & (columns - 1) != 0 and bool(math.prod(case.space))


def _several_rows(case: Case) -> bool:
    alike = "expanded" in case.layouts
    return len(case.space) > 1 and _rows(case) > 1 and _columns(case) > 0 and not alike


_TELLS: tuple[tuple[Callable[[Case], bool], str], ...] = (
    (
        lambda case: case.settings == "other",
        "only with other scalars than the default: a scalar is a constant in the kernel",
    ),
    (lambda case: case.wants is not None, "only where not all inputs want a gradient"),
    (lambda case: case.backed is not None, "only where not all outputs have an upstream gradient"),
    (_past_a_power, "only where the length of a row is no power of two: a mask is missing or wrong"),
    (_several_rows, "only with several rows: the offset of a row is wrong"),
)


def _layout(case: Case) -> str:
    if case.upstream != "random":
        return f"{case.upstream} upstream gradients"
    return f"{next(layout for layout in case.layouts if layout != 'contiguous')} inputs"
