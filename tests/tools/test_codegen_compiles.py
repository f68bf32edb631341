"""Generated kernels go through NVIDIA's compiler: what the interpreter accepts, a GPU's compiler may not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from codegen_zoo import generate as generate_pointwise
from row_zoo import row_reference

from tigon_tools.codegen.generate_job import run as generate
from tigon_tools.schema.generate import GenerateRequest

SCRIPT = Path(__file__).parent / "compile_offline.py"


def row_source(name: str) -> str:
    return generate(GenerateRequest(row_reference(name), name, "LigerTestFunction")).ops_source


@pytest.mark.slow
def test_kernels_compile_for_an_h200(tmp_path: Path) -> None:
    """Point-wise, and over rows: sums over rows in registers and in memory, losses, two outputs, picked elements.

    Each for two values of the sizes: what is 1 is a constant to the compiler.
    """
    rows = ("llama_rms_norm", "dyt", "softmax", "cross_entropy", "largest", "variance")
    sources = {name: row_source(name) for name in rows}
    sources |= {
        name: generate_pointwise(name).ops_source for name in ("swiglu", "clamped_glu", "geglu", "not_differentiable")
    }
    files = []
    for name, text in sources.items():
        files.append(tmp_path / f"{name}.py")
        files[-1].write_text(text)
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    environment.pop("TRITON_INTERPRET", None)
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, files)], env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
    compiled = [line.split() for line in done.stdout.splitlines()]
    kernels = {name for text in sources.values() for name in re.findall(r"^@triton.jit\ndef (\w+)", text, re.MULTILINE)}
    assert {name for name, _, _ in compiled} == kernels
    assert {one for name, one, _ in compiled if name.startswith("_variance")} == {"-", "n_rows,n_cols"}
    assert all(int(size) > 1000 for _, _, size in compiled)
