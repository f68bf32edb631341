import math

import interpreted  # noqa: F401  activates
import numpy as np
import pytest
import torch
import triton
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreted import elementwise
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as cuda_libdevice
from triton.language.extra.libdevice import tanh
from triton.runtime.errors import InterpreterError

from tigon_tools.interpreter import UnsupportedOnCPU
from tigon_tools.interpreter.libdevice_table import function_of


@triton.jit
def imported_by_name(x):
    return tanh(x)


@triton.jit
def from_cuda(x):
    return cuda_libdevice.tanh(x)


@triton.jit
def rsqrt(x):
    return libdevice.rsqrt(x)


@triton.jit
def erf(x):
    return libdevice.erf(x)


@triton.jit
def erfc(x):
    return libdevice.erfc(x)


@triton.jit
def expm1(x):
    return libdevice.expm1(x)


@triton.jit
def log1p(x):
    return libdevice.log1p(x)


@triton.jit
def lgamma(x):
    return libdevice.lgamma(x)


@triton.jit
def power(x):
    return libdevice.pow(x, x)


@triton.jit
def normal_distribution(x):
    return libdevice.normcdf(x)


@triton.jit
def sine_of_half_turns(x):
    return libdevice.sinpi(x)


@triton.jit
def cube_root(x):
    return libdevice.cbrt(x)


FUNCTIONS = [
    (imported_by_name, torch.tanh),
    (from_cuda, torch.tanh),
    (rsqrt, torch.rsqrt),
    (erf, torch.special.erf),
    (erfc, torch.special.erfc),
    (expm1, torch.expm1),
    (log1p, torch.log1p),
    (lgamma, torch.lgamma),
    (power, lambda x: torch.pow(x, x)),
    (normal_distribution, lambda x: (1 + torch.special.erf(x / math.sqrt(2))) / 2),
    (sine_of_half_turns, lambda x: torch.special.sinc(x) * math.pi * x),
    (cube_root, lambda x: torch.pow(x, 1 / 3)),
]


@pytest.mark.parametrize(("kernel", "reference"), FUNCTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_results_and_types_are_those_of_float64_rounded(kernel, reference, dtype):
    x = torch.linspace(0.01, 4, 57).to(dtype)
    expected = reference(x.double()).to(dtype)

    tolerance = torch.finfo(dtype).eps * (1 if dtype == torch.float32 else 8)
    torch.testing.assert_close(elementwise(kernel, x), expected, rtol=tolerance, atol=tolerance)


def test_special_values():
    x = torch.tensor([0.0, -0.0, float("inf"), float("-inf"), float("nan")])

    assert elementwise(imported_by_name, x)[:4].tolist() == [0.0, 0.0, 1.0, -1.0]
    assert elementwise(rsqrt, x)[:3].tolist() == [float("inf"), float("-inf"), 0.0]
    assert elementwise(rsqrt, x)[3:].isnan().all()


def test_float32_denormals_are_zeros_as_in_the_library():
    assert elementwise(rsqrt, torch.tensor([1e-39])).item() == float("inf")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_refused_as_by_the_compiler(dtype):
    with pytest.raises(InterpreterError):
        elementwise(imported_by_name, torch.ones(4, dtype=dtype))


@triton.jit
def two_types(x, y):
    return libdevice.pow(x, y)


def test_a_power_with_an_integer_exponent():
    x, n = torch.tensor([2.0, -3.0, 0.5]), torch.tensor([10, 3, -2], dtype=torch.int32)

    assert elementwise(two_types, x, n).tolist() == [1024.0, -27.0, 4.0]


@triton.jit
def bessel(x):
    return libdevice.jn(2, x)


def test_what_the_table_lacks_is_refused_by_name():
    with pytest.raises(UnsupportedOnCPU, match="__nv_jnf"):
        elementwise(bessel, torch.ones(4))


def symbols_of_the_library() -> set[str]:
    import re
    from pathlib import Path

    return set(re.findall(r'"__nv_\w+"', Path(cuda_libdevice.__file__).read_text()))


def test_every_function_of_the_library_but_three_is_there():
    missing = {symbol for symbol in symbols_of_the_library() if function_of(symbol.strip('"')) is None}

    assert missing == {f'"__nv_{name}"' for name in ("jn", "jnf", "yn", "ynf", "rcp64h")}


def call(symbol: str, *values) -> np.ndarray:
    return np.asarray(function_of(symbol)(*values))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["fadd", "fsub", "fmul", "fdiv"]),
    st.floats(width=32, min_value=-(2.0**60), max_value=2.0**60).filter(lambda x: abs(x) > 1e-20),
    st.floats(width=32, min_value=-(2.0**60), max_value=2.0**60).filter(lambda x: abs(x) > 1e-20),
)
def test_directed_rounding_brackets_the_exact_result(name, x, y):
    from fractions import Fraction

    operands = np.array([x], dtype=np.float32), np.array([y], dtype=np.float32)
    down, up, zero = (call(f"__nv_{name}_{mode}", *operands)[0] for mode in ("rd", "ru", "rz"))
    a, b = Fraction(x), Fraction(y)
    exact = {"fadd": a + b, "fsub": a - b, "fmul": a * b}[name] if name != "fdiv" else a / b

    assert Fraction(float(down)) <= exact <= Fraction(float(up))
    assert up == down or up == np.nextafter(down, np.float32(np.inf))
    assert zero == (down if exact > 0 else up)


@pytest.mark.parametrize(
    ("symbol", "arguments", "expected"),
    [
        ("__nv_clz", [np.array([1, -1, 0], dtype=np.int32)], [31, 0, 32]),
        ("__nv_popc", [np.array([7, -1, 0], dtype=np.int32)], [3, 32, 0]),
        ("__nv_ffs", [np.array([8, 0, -1], dtype=np.int32)], [4, 0, 1]),
        ("__nv_brev", [np.array([1, 2], dtype=np.int32)], [-(2**31), 2**30]),
        ("__nv_mulhi", [np.array([2**30], dtype=np.int32), np.array([-8], dtype=np.int32)], [-2]),
        ("__nv_mul24", [np.array([-1], dtype=np.int32), np.array([5], dtype=np.int32)], [-5]),
        ("__nv_float2int_rn", [np.array([2.5, 3.5, -2.5], dtype=np.float32)], [2, 4, -2]),
        ("__nv_float2int_ru", [np.array([2.1, -2.9], dtype=np.float32)], [3, -2]),
        ("__nv_roundf", [np.array([2.5, -2.5, 0.49999997], dtype=np.float32)], [3, -3, 0]),
        ("__nv_rintf", [np.array([2.5, 3.5], dtype=np.float32)], [2, 4]),
        ("__nv_ilogbf", [np.array([8.0, 0.75], dtype=np.float32)], [3, -1]),
        ("__nv_byte_perm", [np.array([v], dtype=np.int32) for v in (0x33221100, 0x77665544, 0x7410)], [0x77441100]),
        ("__nv_fdimf", [np.array([3.0, 1.0], dtype=np.float32), np.array([1.0, 3.0], dtype=np.float32)], [2, 0]),
        ("__nv_tgammaf", [np.array([5.0, 0.5], dtype=np.float32)], [24, np.float32(math.sqrt(math.pi))]),
        ("__nv_hypotf", [np.array([3.0], dtype=np.float32), np.array([4.0], dtype=np.float32)], [5]),
        ("__nv_float_as_int", [np.array([1.0], dtype=np.float32)], [0x3F800000]),
    ],
)  # fmt: skip
def test_values_from_the_users_guide(symbol, arguments, expected):
    assert call(symbol, *arguments).tolist() == expected
