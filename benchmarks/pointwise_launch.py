"""Which block size and how many warps the generated point-wise kernels should have; on a GPU.

    python benchmarks/pointwise_launch.py [--json FILE]

Generates kernels for a few references, and times forward and backward (GPU time by CUDA events over
rotating inputs larger than the L2, candidates interleaved in one run) for each `MAX_BLOCK_SIZE`, beside
Liger's own kernel where there is one, eager PyTorch and torch.compile, as a share of a device copy's
bandwidth measured in the same run. Needs torch, Triton, liger-kernel and `tools/` on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from gpu_time import copy_tb_s, rotations_for, times_of

from tigon_tools.codegen.generate_job import run as generate
from tigon_tools.schema.generate import GenerateRequest
from tigon_tools.schema.reference import Reference

REFERENCES = {
    "relu_squared": "import torch\ndef relu_squared(x):\n    return torch.relu(x) ** 2\n",
    "silu_mul": (
        "import torch\nimport torch.nn.functional as F\n"
        "def silu_mul(a, b, gate_multiplier: float = 1.0):\n    return F.silu(gate_multiplier * a) * b\n"
    ),
    "geglu": (
        "import torch\nimport torch.nn.functional as F\ndef geglu(a, b):\n    return F.gelu(a, approximate='tanh') * b\n"
    ),
}
INPUTS = {"relu_squared": 1, "silu_mul": 2, "geglu": 2}
SIZES = [(4096, 4096), (8192, 14336), (65536, 128), (2048, 16384)]
"""Rows and columns: a hidden size, an MLP width that is no power of two, short rows, long rows."""
BLOCKS = [512, 1024, 2048, 4096, 8192]
WARPS = [4, 8]
REPEATS = 15


def load(source: str, name: str, folder: Path) -> Any:
    path = folder / f"{name}_generated.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def settings(block: int, warps: int) -> Callable[[int], tuple[int, int]]:
    def calculate(n: int) -> tuple[int, int]:
        import triton

        return triton.next_power_of_2(min(n, block)), warps

    return calculate


def liger(name: str, values: list[Any]) -> tuple[Callable[[int], Any], Callable[[int], Any]] | None:
    from liger_kernel.ops import geglu, relu_squared, swiglu

    if name == "relu_squared":
        return (lambda i: relu_squared.relu_squared_forward(values[i][0]),
                lambda i: relu_squared.relu_squared_backward(values[i][0], values[i][1]))  # fmt: skip
    ops = swiglu if name == "silu_mul" else geglu
    forward = ops.swiglu_forward if name == "silu_mul" else ops.geglu_forward
    backward = ops.swiglu_backward if name == "silu_mul" else ops.geglu_backward
    # Liger's backward writes over its inputs: it is timed on what it made of them, which costs the same.
    return lambda i: forward(values[i][0], values[i][1]), lambda i: backward(values[i][0], values[i][1], values[i][2])


def eager(name: str) -> Callable[..., torch.Tensor]:
    if name == "relu_squared":
        return lambda x: torch.relu(x) ** 2
    if name == "silu_mul":
        return lambda a, b: F.silu(a) * b
    return lambda a, b: F.gelu(a, approximate="tanh") * b


def measure(name: str, module: Any, rows: int, columns: int) -> dict[str, Any]:
    inputs = INPUTS[name]
    bytes_each = rows * columns * 2
    rotations = rotations_for(bytes_each * (inputs + 1))
    values = [
        [torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16) for _ in range(inputs + 1)]
        for _ in range(rotations)
    ]
    forward_fn, backward_fn = getattr(module, f"{name}_forward"), getattr(module, f"{name}_backward")
    extra = (1.0,) if name == "silu_mul" else ()
    forward: dict[str, Callable[[int], Any]] = {}
    backward: dict[str, Callable[[int], Any]] = {}

    def with_settings(block: int, warps: int, call: Callable[[int], Any]) -> Callable[[int], Any]:
        chosen = settings(block, warps)

        def run(i: int) -> Any:
            module.MAX_BLOCK_SIZE, module.calculate_settings = block, chosen
            return call(i)

        return run

    for block in BLOCKS:
        for warps in WARPS:
            key = f"{block}/{warps}"
            forward[key] = with_settings(block, warps, lambda i: forward_fn(*values[i][:inputs], *extra))
            backward[key] = with_settings(
                block, warps, lambda i: backward_fn(values[i][-1], *values[i][:inputs], *extra)
            )
    own = liger(name, values)
    if own is not None:
        forward["liger"], backward["liger"] = own
    function = eager(name)
    compiled = torch.compile(function)
    forward["eager"] = lambda i: function(*values[i][:inputs])
    forward["compile"] = lambda i: compiled(*values[i][:inputs])
    ceiling = copy_tb_s()
    result = {
        "kernel": name,
        "rows": rows,
        "columns": columns,
        "copy_tb_s": round(ceiling, 3),
        "forward": {}, "backward": {},
    }  # fmt: skip
    for mode, calls, moved in (("forward", forward, inputs + 1), ("backward", backward, 2 * inputs + 1)):
        for key, time in times_of(calls, rotations, REPEATS).items():
            share = moved * bytes_each / time.gpu / 1e9 / ceiling
            result[mode][key] = {"ms": round(time.gpu, 5), "share": round(share, 3)}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for name, code in REFERENCES.items():
            generated = generate(GenerateRequest(Reference(code, name), name, f"Liger{name}Function"))
            module = load(generated.ops_source, name, Path(folder))
            for rows, columns in SIZES:
                results.append(measure(name, module, rows, columns))
                report(results[-1])
                torch.cuda.empty_cache()
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


def report(result: dict[str, Any]) -> None:
    print(
        f"{result['kernel']} {result['rows']}x{result['columns']} bf16, copy {result['copy_tb_s']} TB/s; share of the copy:"
    )
    for mode in ("forward", "backward"):
        entries = "  ".join(f"{key} {value['share']:.2f}" for key, value in result[mode].items())
        print(f"  {mode:8} {entries}", flush=True)


if __name__ == "__main__":
    main()
