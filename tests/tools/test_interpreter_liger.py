"""Liger's own tests, which nobody here wrote, in the repaired interpreter.

Each file failed in the interpreter as shipped, for one cause: GeGLU for the empty `tanh` of libdevice, sparsemax
for one-element arrays, PolyNorm for the empty `rsqrt`, neighbourhood attention for bfloat16 arithmetic.
"""

import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = "tigon_tools.interpreter.pytest_plugin"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "chosen"),
    [
        ("test_geglu.py", "test_correctness_functional"),
        ("test_sparsemax.py", ""),
        ("test_poly_norm.py", ""),
        ("test_fused_neighborhood_attention.py", "dtype1"),
    ],
)
def test_ligers_own_tests_pass(file: str, chosen: str, pristine_liger: Path) -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", PLUGIN, "-p", "no:cacheprovider", "-q", "-k", chosen,
         f"test/transformers/{file}"],
        capture_output=True, text=True, cwd=pristine_liger, check=False,
    )  # fmt: skip

    last = finished.stdout.strip().splitlines()[-1]
    assert finished.returncode == 0, finished.stdout[-3000:]
    assert " passed" in last and "failed" not in last
