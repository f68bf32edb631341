import interpreted  # noqa: F401  activates
import pytest
import torch
import triton
import triton.language as tl
from interpreted import of_block

SIZE = 64
HALVES = [torch.float16, torch.bfloat16]
FLOATS = [*HALVES, torch.float32, torch.float64]


@triton.jit
def total(x):
    return tl.sum(x, axis=0)


@triton.jit
def largest(x):
    return tl.max(x, axis=0)


@triton.jit
def smallest(x):
    return tl.min(x, axis=0)


@triton.jit
def place_of_largest(x):
    return tl.argmax(x, axis=0)


@triton.jit
def place_of_smallest(x):
    return tl.argmin(x, axis=0)


@triton.jit
def times(x, y):
    return x * y


@triton.jit
def product(x):
    return tl.reduce(x, 0, times)


@triton.jit
def last(x, y):
    return y


@triton.jit
def keep_last(x):
    return tl.reduce(x, 0, last)


@triton.jit
def running_last(x):
    return tl.associative_scan(x, 0, last)


@triton.jit
def running_sum(x):
    return tl.cumsum(x, axis=0)


@triton.jit
def running_sum_from_the_end(x):
    return tl.cumsum(x, axis=0, reverse=True)


@triton.jit
def running_product(x):
    return tl.cumprod(x, axis=0)


@triton.jit
def running_custom_product(x):
    return tl.associative_scan(x, 0, times)


@triton.jit
def in_order(x):
    return tl.sort(x)


@triton.jit
def counts(x):
    return tl.histogram(x, 8)


@triton.jit
def sum_of_rows_kernel(x_ptr, z_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, AXIS: tl.constexpr):
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + rows[:, None] * COLUMNS + columns[None, :])
    if AXIS is None:
        tl.store(z_ptr, tl.sum(x))
    else:
        kept = tl.sum(x, axis=AXIS, keep_dims=True)
        tl.store(z_ptr + tl.arange(0, COLUMNS if AXIS == 0 else ROWS), tl.ravel(kept))


def quarters(dtype: torch.dtype) -> torch.Tensor:
    """Multiples of a quarter: all partial sums are exact, so the order of a sum does not matter."""
    generator = torch.Generator().manual_seed(3)
    return (torch.randint(-8, 9, (SIZE,), generator=generator) / 4).to(dtype)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int32, torch.int64])
def test_sums_and_extremes(dtype):
    x = quarters(dtype)

    assert of_block(total, x, 1, dtype).item() == x.double().sum().item()
    assert of_block(largest, x, 1, dtype).item() == x.double().max().item()
    assert of_block(smallest, x, 1, dtype).item() == x.double().min().item()
    assert of_block(place_of_largest, x, 1, torch.int32).item() == x.tolist().index(max(x.tolist()))
    assert of_block(place_of_smallest, x, 1, torch.int32).item() == x.tolist().index(min(x.tolist()))


@pytest.mark.parametrize(("dtype", "step"), [(torch.float16, 2048), (torch.bfloat16, 256)])
def test_a_sum_of_halves_is_rounded_at_each_step(dtype, step):
    """Tree of neighbours: (step + 1) is a tie that rounds to `step`, twice; a sum at the end would have 2 more."""
    x = torch.tensor([step, 1, step, 1], dtype=dtype)

    assert of_block(total, x, 1, torch.float32).item() == 2 * step


def test_half_precision_sums_overflow():
    x = torch.full((4,), 60000.0, dtype=torch.float16)

    assert of_block(total, x, 1, torch.float32).item() == float("inf")


def test_nan_is_ignored_by_extremes_unless_there_is_nothing_else():
    x = torch.tensor([float("nan"), 3.0, -1.0, float("nan")])

    assert of_block(largest, x, 1, torch.float32).item() == 3.0
    assert of_block(smallest, x, 1, torch.float32).item() == -1.0
    every = of_block(largest, torch.full((4,), float("nan")), 1, torch.float32)
    assert every.isnan().all()


def test_argmax_of_nothing_but_nan_gives_a_place():
    found = of_block(place_of_largest, torch.full((8,), float("nan")), 1, torch.int32)

    assert 0 <= found.item() < 8


@pytest.mark.parametrize("dtype", FLOATS)
def test_combine_functions_of_the_kernel(dtype):
    generator = torch.Generator().manual_seed(1)
    x = (2.0 ** torch.randint(-1, 2, (SIZE,), generator=generator)).to(dtype)

    assert of_block(product, x, 1, torch.float64).item() == x.double().prod().item()
    assert torch.equal(of_block(running_custom_product, x, SIZE, torch.float64), x.double().cumprod(0))


def test_the_order_of_operands_is_kept():
    x = torch.arange(SIZE, dtype=torch.float32)

    assert of_block(keep_last, x, 1, torch.float32).item() == SIZE - 1
    assert torch.equal(of_block(running_last, x, SIZE, torch.float32), x)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int32])
def test_scans(dtype):
    x = quarters(dtype)

    assert torch.equal(of_block(running_sum, x, SIZE, torch.float64), x.double().cumsum(0))
    backwards = x.double().flip(0).cumsum(0).flip(0)
    assert torch.equal(of_block(running_sum_from_the_end, x, SIZE, torch.float64), backwards)
    signs = torch.where(x < 0, -1, 1).to(dtype)
    assert torch.equal(of_block(running_product, signs, SIZE, torch.float64), signs.double().cumprod(0))


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int32])
def test_sort(dtype):
    x = quarters(dtype)

    assert torch.equal(of_block(in_order, x, SIZE, dtype), x.sort().values)


def test_histogram_drops_what_has_no_bin():
    x = torch.tensor([0, 7, 7, 8, 100, -1, 3, 3], dtype=torch.int32)

    assert of_block(counts, x, 8, torch.int32).tolist() == [1, 0, 0, 2, 0, 0, 0, 2]


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("dtype", FLOATS)
def test_axes(axis, dtype):
    x = (torch.arange(32).reshape(4, 8) % 5 / 2).to(dtype)
    expected = x.double().sum() if axis is None else x.double().sum(axis)
    z = torch.zeros(expected.numel(), dtype=torch.float64)

    sum_of_rows_kernel[(1,)](x, z, ROWS=4, COLUMNS=8, AXIS=axis)

    assert torch.equal(z, expected.reshape(-1))


@triton.jit
def larger_by_branching(x, y):
    if x > y:  # noqa: SIM108  a statement, which cannot be applied to whole blocks
        result = x
    else:
        result = y
    return result


@triton.jit
def largest_by_branching(x):
    return tl.reduce(x, 0, larger_by_branching)


def test_a_combine_function_that_branches_is_called_for_each_pair():
    x = torch.tensor([1.0, 5.0, -3.0, 2.0])

    assert of_block(largest_by_branching, x, 1, torch.float32).item() == 5.0
