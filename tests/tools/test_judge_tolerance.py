"""The error allowed follows eager's own, and does not go beyond what the dtype means."""

from __future__ import annotations

import pytest
import torch

from tigon_tools.judge.compare import Expected, compare
from tigon_tools.judge.rounding import Flushed, LastBitsMoved, last_bit_moved
from tigon_tools.judge.tolerance import FINER, EagerError, eager_error, is_off, slack_of

X = torch.randn(64, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def expected(truth: torch.Tensor, eager: torch.Tensor) -> Expected:
    return Expected("output Y", truth, eager, eager_error(eager, truth), lambda: torch.zeros_like(truth), {})


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_the_rounded_truth_passes_and_a_hundredfold_rounding_fails(dtype: torch.dtype) -> None:
    truth = torch.tanh(X)
    eager = torch.tanh(X.to(dtype)).double()
    exact_inputs = torch.tanh(X.to(dtype).double())
    what = expected(exact_inputs, eager.to(dtype))
    assert compare(exact_inputs.to(dtype), what) is None
    noise = torch.randn(truth.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    worse = exact_inputs * (1 + 100 * torch.finfo(dtype).eps * noise)
    assert compare(worse.to(dtype), what) is not None


def test_a_result_computed_in_bfloat16_fails_as_float32() -> None:
    truth = torch.sin(X.float().double())
    what = expected(truth, torch.sin(X.float()))
    found = compare(torch.sin(X.float()).bfloat16().float(), what)
    assert found is not None
    assert "times the error allowed" in found.what


def test_a_loss_of_precision_that_no_element_shows_is_seen_in_the_norm() -> None:
    """Every element off by 3 ulp: each is allowed, since eager's worst is near; the whole is not."""
    truth = X.abs() + 1
    eager = truth.float()
    off = (truth.float().double() * (1 + 3 * torch.finfo(torch.float32).eps)).float()
    found = compare(off, expected(truth, eager))
    assert found is not None
    assert "inaccurate as a whole" in found.what


def test_one_element_wrong_by_little_is_found() -> None:
    truth = torch.exp(X)
    candidate = truth.float()
    candidate[3, 5] *= 1 + 1e-5
    found = compare(candidate, expected(truth, truth.float()))
    assert found is not None
    assert "in 1 of 4096 elements" in found.what
    assert "at (3, 5)" in found.what


def test_infinity_next_to_the_largest_number_is_no_error() -> None:
    largest = torch.finfo(torch.float16).max
    truth = torch.full((1, 4), largest - 1.0, dtype=torch.float64)
    what = expected(truth, truth.half())
    assert compare(torch.full((1, 4), float("inf"), dtype=torch.float16), what) is None
    truth = truth / 2
    found = compare(torch.full((1, 4), float("inf"), dtype=torch.float16), expected(truth, truth.half()))
    assert found is not None
    assert "not upcast to float32" in found.what


def test_where_eager_lost_the_value_shows_nothing() -> None:
    truth = torch.tensor([1.0, 2.0, 3.0, 0.9], dtype=torch.float64)
    eager = torch.tensor([1.0, 2.0, 3.0, 0.0])
    assert is_off(eager, truth).tolist() == [False, False, False, True]
    assert eager_error(eager, truth, skips_where_off=True) == EagerError(0.0, 0.0, 0.0)


def test_slack_is_the_sensitivity_and_not_a_jump() -> None:
    x = torch.tensor([80.0, 1.0, 1.0], dtype=torch.float64)
    function = lambda v: torch.stack([torch.exp(v[0]), torch.exp(v[1]), (v[2] >= 1).double()])  # noqa: E731
    moves = [tuple(function(last_bit_moved(x, seed, share)) for share in (1.0, FINER)) for seed in range(4)]
    slack = slack_of(function(x), moves, function(x))  # type: ignore[arg-type]
    epsilon = torch.finfo(torch.float32).eps
    assert float(slack[0] / torch.exp(x[0])) == pytest.approx(80 * epsilon, rel=1e-3)
    assert float(slack[1] / torch.exp(x[1])) == pytest.approx(epsilon, rel=1e-3)
    assert float(slack[2]) == 0.0


def test_what_cancels_on_the_way_is_open_to_the_rounding_of_its_terms() -> None:
    x = torch.tensor([9.0], dtype=torch.float64)
    truth = 1 - torch.tanh(x) ** 2
    moves = []
    for seed in range(8):
        pair = []
        for share in (1.0, FINER):
            with LastBitsMoved(seed, share):
                pair.append(1 - torch.tanh(x) ** 2)
        moves.append((pair[0], pair[1]))
    epsilon = torch.finfo(torch.float32).eps
    # tanh, its square and the difference move by one epsilon each; the square doubles the first.
    assert float(slack_of(truth, moves, truth)) == pytest.approx(3 * epsilon, rel=0.1)


def test_what_a_flush_to_zero_takes_away_is_open() -> None:
    x = torch.tensor([-88.0, -1.0], dtype=torch.float64)
    truth = torch.exp(x) * torch.exp(-x)
    with Flushed():
        flushed = torch.exp(x) * torch.exp(-x)
    assert slack_of(truth, [], flushed).tolist() == [pytest.approx(1.0), 0.0]
