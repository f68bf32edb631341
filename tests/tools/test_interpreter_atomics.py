import interpreted  # noqa: F401  activates
import pytest
import torch
import triton
import triton.language as tl
from triton.runtime.errors import InterpreterError

SIZE = 16


@triton.jit
def add_kernel(x_ptr, z_ptr, found_ptr, MODULUS: tl.constexpr, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    x = tl.load(x_ptr + offsets)
    found = tl.atomic_add(z_ptr + offsets % MODULUS, x, mask=offsets < SIZE - 2)
    tl.store(found_ptr + offsets, found)


@triton.jit
def exchange_kernel(x_ptr, z_ptr, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    tl.atomic_xchg(z_ptr + offsets, tl.load(x_ptr + offsets))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_atomic_add_rounds_each_addition_and_returns_what_it_found(dtype):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(SIZE, generator=generator).to(dtype)
    before = torch.randn(SIZE, generator=generator).to(dtype)
    z, found = before.clone(), torch.zeros(SIZE, dtype=dtype)

    add_kernel[(1,)](x, z, found, MODULUS=SIZE, SIZE=SIZE)

    assert torch.equal(z[:-2], (before + x)[:-2])
    assert torch.equal(z[-2:], before[-2:])
    assert torch.equal(found[:-2], before[:-2])


@pytest.mark.parametrize(("dtype", "step"), [(torch.float16, 2048), (torch.bfloat16, 256)])
def test_lanes_that_meet_are_added_one_by_one(dtype, step):
    """14 ones added to a number whose next is 2 away: each is lost, though 14 at once would not be."""
    x, z = torch.ones(SIZE, dtype=dtype), torch.full((1,), step, dtype=dtype)

    add_kernel[(1,)](x, z, torch.zeros(SIZE, dtype=dtype), MODULUS=1, SIZE=SIZE)

    assert z.item() == step


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_exchange_is_refused_as_by_the_compiler(dtype):
    with pytest.raises(InterpreterError, match="atomic_xchg does not support"):
        exchange_kernel[(1,)](torch.ones(SIZE, dtype=dtype), torch.zeros(SIZE, dtype=dtype), SIZE=SIZE)
