import interpreted  # noqa: F401  activates
import torch
import triton
import triton.language as tl
from interpreted import elementwise
from triton.language import sqrt
from triton.language.math import exp2


@triton.jit
def names_imported_from_the_language(x):
    return sqrt(x) + exp2(x)


def test_names_imported_from_the_language_work_in_kernels():
    x = torch.tensor([1.0, 4.0])

    assert elementwise(names_imported_from_the_language, x).tolist() == [3.0, 18.0]


@triton.jit
def random_numbers(x):
    return tl.randint(0, x)


def test_random_numbers_are_philox():
    """First word of Philox4x32-10 with key and counter zero (Salmon et al., 2011, known-answer tests)."""
    zero = torch.zeros(1, dtype=torch.int32)

    assert elementwise(random_numbers, zero, dtype=torch.int64).item() % 2**32 == 0x6627E8D5


@triton.jit
def debug_helpers(x):
    tl.static_assert(x.dtype == tl.float32)
    tl.device_assert(x > 100)
    tl.debug_barrier()
    return tl.multiple_of(x, 1)


def test_assertions_are_off_without_debug_mode_as_on_a_gpu():
    assert elementwise(debug_helpers, torch.ones(2)).tolist() == [1.0, 1.0]


@triton.jit
def cached(x_ptr, z_ptr, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    x = tl.load(x_ptr + offsets, cache_modifier=".cg", eviction_policy="evict_first")
    tl.store(z_ptr + offsets, x, cache_modifier=".cs", eviction_policy="evict_last")


def test_cache_hints_change_nothing():
    x, z = torch.arange(4.0), torch.zeros(4)

    cached[(1,)](x, z, SIZE=4)

    assert torch.equal(x, z)
