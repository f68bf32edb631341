"""The words for an error fit the error."""

from __future__ import annotations

import pytest
import torch

from tigon_tools.judge.cases import Case
from tigon_tools.judge.compare import Mismatch
from tigon_tools.judge.diagnosis import cause, where
from tigon_tools.judge.findings import Findings
from tigon_tools.judge.pattern import pattern_of

TRUTH = torch.randn(6, 17, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
OTHER = torch.randn(6, 17, generator=torch.Generator().manual_seed(4), dtype=torch.float64)


@pytest.mark.parametrize(
    ("got", "says"),
    [
        (TRUTH * 2, "it is wrong by a constant factor 2"),
        (TRUTH * 0.5, "it is wrong by a constant factor 0.5"),
        (-TRUTH, "it has the wrong sign"),
        (TRUTH + 0.25, "it is wrong by a constant 0.25 that is added"),
        (torch.zeros_like(TRUTH), "it is zero everywhere"),
        (OTHER, "it is the gradient of b: the two are swapped"),
        (torch.roll(TRUTH, 1, -1), "its values are moved by one column"),
        (torch.roll(TRUTH, -1, -2), "its values are moved by one row"),
        (TRUTH[:1].expand(6, 17), "every row has the values of the first"),
        (TRUTH * OTHER, ""),
    ],
)
def test_cause(got: torch.Tensor, says: str) -> None:
    limit = torch.full_like(TRUTH, 1e-7)
    others = {"the gradient of a": TRUTH, "the gradient of b": OTHER}
    assert cause("the gradient of a", got, TRUTH, limit, others) == says


def places(*rows: str) -> torch.Tensor:
    return torch.tensor([[mark == "x" for mark in row] for row in rows])


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (places("xxx", "xxx"), "everywhere"),
        (places("..x", "..x"), "in the last column"),
        (places(".xx", ".xx"), "in the last 2 of 3 columns (from 1)"),
        (places("...", "..x", "..x"), "in the last column"),
        (places("...", "x.x", "x.."), "in every row but the first (3 of 9 elements)"),
        (places("...", "...", "xxx"), "in the last row (3 of 9 elements)"),
        (places("x..", "...", "..x"), "in 2 of 9 elements"),
    ],
)
def test_where(wrong: torch.Tensor, says: str) -> None:
    assert where(wrong) == says


PLAIN = Case((7, 33))


@pytest.mark.parametrize(
    ("failing", "passing", "says"),
    [
        (Case((6, 40), layouts=("halves",)), PLAIN, "only with halves inputs: a stride is ignored"),
        (Case((6, 40), upstream="split"), PLAIN, "only with split upstream gradients: a stride is ignored"),
        (Case((7, 33), "float16"), PLAIN, "only in float16: a value leaves its range, or is not computed in float32"),
        (Case((7, 33), settings="other"), PLAIN, "only with other scalars than the default: a scalar is a constant in the kernel"),
        (PLAIN, Case((2, 128)), "only where the length of a row is no power of two: a mask is missing or wrong"),
        (Case((2, 4097)), PLAIN, "only with rows longer than 33"),
        (PLAIN, Case((1, 33)), "only with several rows: the offset of a row is wrong"),
        (PLAIN, PLAIN, ""),
    ],
)  # fmt: skip
def test_pattern(failing: Case, passing: Case, says: str) -> None:
    assert pattern_of([failing], [passing]) == says


def test_what_explains_wrong_values_is_told_before_them() -> None:
    findings = Findings(cases=1)
    case = Case((2, 3))
    findings.note("forward", Mismatch("output y is wrong", 9.0), case)
    findings.note("input_modified", "x is modified", case)
    result = findings.result(0.0, gradients=True)
    assert [f.check for f in result.findings if f.status == "failed"] == ["input_modified", "forward"]
