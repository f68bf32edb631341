import threading
import warnings

import interpreted  # noqa: F401  activates
import pytest
import torch
import triton
import triton.language as tl
from triton.runtime.errors import InterpreterError

from tigon_tools.interpreter import UnsupportedOnCPU


@triton.jit
def fill_kernel(z_ptr, value, BLOCK: tl.constexpr):
    place = tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
    tl.store(z_ptr + place * BLOCK + tl.arange(0, BLOCK), value)


def test_threads_that_launch_at_once_keep_their_programs_apart():
    results = [torch.zeros(24 * 4) for _ in range(6)]
    grids = [(24, 1), (1, 24), (6, 4), (4, 6), (2, 12), (12, 2)]
    start = threading.Barrier(len(results))

    def launch(number):
        start.wait()
        fill_kernel[grids[number]](results[number], float(number + 1), BLOCK=4)

    threads = [threading.Thread(target=launch, args=(number,)) for number in range(len(results))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for number, result in enumerate(results):
        assert result.tolist() == [number + 1.0] * result.numel()


@triton.jit
def no_number_kernel(x_ptr, z_ptr):
    x = tl.load(x_ptr + tl.arange(0, 4))
    tl.store(z_ptr + tl.arange(0, 4), tl.exp(x) / (x - x) + tl.log(-x) + (x * 1e38).to(tl.float16))


def test_overflow_and_nan_are_values_not_warnings():
    x, z = torch.tensor([1000.0, -1.0, 0.0, 3e38]), torch.zeros(4)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        no_number_kernel[(1,)](x, z)

    assert not z.isfinite().any()


def test_launch_options_are_for_the_compiler_only():
    z = torch.zeros(4)

    fill_kernel[(1,)](z, 2.0, BLOCK=4, num_warps=8, num_stages=2, maxnreg=64, grf_mode="256")

    assert z.tolist() == [2.0] * 4


def test_a_misspelt_argument_is_an_error():
    with pytest.raises(KeyError, match="num_wraps"):
        fill_kernel[(1,)](torch.zeros(4), 2.0, BLOCK=4, num_wraps=8)


@pytest.mark.parametrize(("grid", "said"), [((1, 70000), "Axis 1"), ((1, 1, 70000), "Axis 2"), ((-1,), "Axis 0")])
def test_grids_that_no_gpu_takes_are_refused(grid, said):
    with pytest.raises(ValueError, match=said):
        fill_kernel[grid](torch.zeros(4), 2.0, BLOCK=4)


def test_an_empty_grid_does_nothing():
    z = torch.zeros(4)

    fill_kernel[(0,)](z, 2.0, BLOCK=4)

    assert z.tolist() == [0.0] * 4


def test_a_grid_function_sees_what_the_caller_passed():
    seen = {}

    def grid(meta):
        seen.update(meta)
        return (1,)

    fill_kernel[grid](torch.zeros(4), 2.0, BLOCK=4)

    assert seen["value"] == 2.0
    assert type(seen["value"]) is float
    assert isinstance(seen["z_ptr"], torch.Tensor)


@triton.jit
def refused_function(x):
    return tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=tl.int32, is_pure=True, pack=1)


@triton.jit
def refused_kernel(z_ptr):
    tl.store(z_ptr, refused_function(tl.load(z_ptr)))


def test_a_refusal_arrives_as_one_even_from_a_called_function():
    with pytest.raises(UnsupportedOnCPU, match="PTX"):
        refused_kernel[(1,)](torch.zeros(1, dtype=torch.int32))


@triton.jit
def broken_kernel(z_ptr):
    tl.store(z_ptr, tl.arange(0, 3))


def test_other_failures_are_the_interpreters_errors():
    with pytest.raises(InterpreterError, match="power of 2"):
        broken_kernel[(1,)](torch.zeros(4))


@triton.jit
def masked_kernel(x_ptr, z_ptr, count, far, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    wild = tl.where(offsets < count, offsets, far)
    x = tl.load(x_ptr + wild, mask=offsets < count)
    tl.store(z_ptr + wild, x + 1, mask=offsets < count)


def test_addresses_of_masked_off_lanes_are_not_touched():
    x, z = torch.arange(5.0), torch.zeros(5)

    masked_kernel[(1,)](x, z, 5, 2**50, SIZE=8)

    assert torch.equal(z, x + 1)


@triton.jit
def shift_kernel(x_ptr, z_ptr, stride, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    tl.store(z_ptr + offsets, tl.load(x_ptr + offsets * stride))


def test_views_are_read_where_they_are():
    base = torch.arange(24.0).reshape(4, 6)
    view, z = base[:, 2], torch.zeros(4)

    shift_kernel[(1,)](view, z, view.stride(0), SIZE=4)

    assert torch.equal(z, view)


def test_a_warm_up_launches_nothing():
    z = torch.zeros(4)

    fill_kernel.warmup(z, 2.0, BLOCK=4, grid=(1,))

    assert z.tolist() == [0.0] * 4


def test_hooks_before_a_run_see_the_arguments():
    @triton.jit
    def kernel(z_ptr):
        tl.store(z_ptr, 1.0)

    seen = []
    kernel.add_pre_run_hook(lambda *arguments, **named: seen.append(len(arguments)))
    kernel[(1,)](torch.zeros(1))

    assert seen == [1]
