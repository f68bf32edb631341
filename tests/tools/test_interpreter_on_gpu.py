"""The interpreter against the compiler: the cases of `interpreter_cases.py`.

Where there is a GPU, all of them are run on it and on the CPU beside it. Elsewhere those whose result is defined
to the last bit are compared with what an H200 gave (Triton 3.6.0, torch 2.11), kept as digests.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import interpreted  # noqa: F401  activates, before kernels are imported
import pytest
import torch
from interpreter_cases import digest

CASES = Path(__file__).with_name("interpreter_cases.py")

UNDEFINED_ON_A_GPU = ("cast fp16 u8", "cast bf16 u8", "cast fp32 u8", "cast fp64 u8")
"""Out-of-range conversions to uint8 disturb neighbouring lanes in compiled code; the hardware promises nothing."""
COMPILERS_OWN_ERROR = ("cast fp8e5 bf16",)
"""Triton 3.6 turns infinity and NaN of this format into large numbers."""
FUSED = ("constant ", "div_rd ")
"""The compiler contracts `x * 2.5 + 1` to one fma, which rounds once: the interpreter runs each operation."""
APPROXIMATE = {"truediv": 2e-7, "sigmoid": 5e-7, "softmax": 5e-7, "lgamma": 1e-5, "tl_exp": 4e-6, "normcdf": 5e-7,
               "tgamma": 1e-6, "tl_exp2": 4e-6, "tl_sin": 1e-3, "erfcx": 5e-7}  # fmt: skip
"""Relative error that GPU code has in float32 by design (`div.full`, `ex2.approx`, the library's stated ulps)."""
LIBRARY_ULPS = 2.5e-7
UNSTABLE = ("j0", "logb", "ilogb", "exp10", "erfinv")
"""Differences at arguments where neither side is exact: huge ones, and denormals."""


def run(results: Path, *options: str) -> dict[str, torch.Tensor | str]:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    subprocess.run([sys.executable, str(CASES), str(results), *options], check=True, env=environment)
    loaded: dict[str, torch.Tensor | str] = torch.load(results)
    return loaded


def tolerance(case: str) -> float:
    operation, _, rest = case.partition(" ")
    if operation in APPROXIMATE:
        return APPROXIMATE[operation]
    exact = ("tl_floor", "tl_sqrt_rn", "tl_div_rn", "round", "rint", "isnan", "float2int_rn", "add_rz", "mul_rz")
    library = operation.startswith("tl_") or (rest in ("fp32", "fp64") and operation in LIBRARY)
    return LIBRARY_ULPS if library and operation not in exact else 0.0


LIBRARY = ("tanh", "rsqrt", "erf", "expm1", "log1p", "pow", "sinpi", "cospi", "sqrt_ru", "remainder")


def is_exact(case: str) -> bool:
    skipped = UNDEFINED_ON_A_GPU + COMPILERS_OWN_ERROR
    return case not in skipped and not case.startswith(FUSED + UNSTABLE) and tolerance(case) == 0


def test_exact_results_are_those_of_an_h200(tmp_path):
    recorded = json.loads(CASES.with_name("interpreter_h200.json").read_text())
    on_cpu = run(tmp_path / "cpu.pt", "--cpu")

    different = [case for case, expected in recorded.items() if digest(on_cpu[case]) != expected]

    assert len(recorded) > 250
    assert not different


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="compares with a GPU, and there is none")
def test_compiled_and_interpreted_kernels_store_the_same(tmp_path):
    on_gpu, on_cpu = run(tmp_path / "gpu.pt"), run(tmp_path / "cpu.pt", "--cpu")
    different = []
    for case, expected in on_gpu.items():
        found = on_cpu[case]
        if isinstance(expected, str) or isinstance(found, str):
            if not (isinstance(expected, str) and isinstance(found, str)):
                different.append(f"{case}: only one side refuses: {expected!r} {found!r}"[:300])
            continue
        if not is_exact(case) and tolerance(case) == 0:
            continue
        left, right = found.double(), expected.double()
        close = torch.isclose(left, right, rtol=tolerance(case), atol=0, equal_nan=True)
        if not close.all():
            worst = (~close).nonzero().flatten()[:3].tolist()
            different.append(f"{case}: {[(float(left[i]), float(right[i])) for i in worst]}")
    assert not different, "\n".join(different)
