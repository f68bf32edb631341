import interpreted  # noqa: F401  activates
import pytest
import torch
import triton
import triton.language as tl
from interpreted import elementwise
from triton.language.extra import cuda

from tigon_tools.interpreter import UnsupportedOnCPU


@triton.jit
def scaled_kernel(x_ptr, s_ptr, z_ptr):
    i, k = tl.arange(0, 32), tl.arange(0, 64)
    x = tl.load(x_ptr + i[:, None] * 64 + k[None, :])
    y = tl.load(x_ptr + k[:, None] * 32 + i[None, :])
    scale = tl.load(s_ptr + i[:, None] * 2 + tl.arange(0, 2)[None, :])
    tl.store(z_ptr + i[:, None] * 32 + i[None, :], tl.dot_scaled(x, scale, "e4m3", y, scale, "e4m3"))


def test_microscaled_products_are_refused():
    x = torch.zeros(32 * 64, dtype=torch.uint8).view(torch.float8_e4m3fn)

    with pytest.raises(UnsupportedOnCPU, match="dot_scaled"):
        scaled_kernel[(1,)](x, torch.zeros(64, dtype=torch.uint8), torch.zeros(32 * 32))


@triton.jit
def clock(x):
    return x + cuda.globaltimer().to(tl.float32)


def test_a_gpus_registers_are_refused():
    with pytest.raises(UnsupportedOnCPU, match="PTX"):
        elementwise(clock, torch.ones(4))


@triton.jit
def shown(x):
    tl.device_print("x", x)
    return x


def test_bfloat16_is_printed_as_numbers(capsys):
    elementwise(shown, torch.tensor([1.5, -2.0], dtype=torch.bfloat16))

    assert "1.5" in capsys.readouterr().out
