"""How many elements a program over rows should have, in how many warps, and how many programs; on a GPU.

    python benchmarks/row_launch.py --folder FOLDER [--json FILE] [--ops NAME ...]

For a few of `liger_ops` and sizes: GPU time of the generated forward and backward for each tile (elements a program has
at least), elements a thread, block (the longest row kept whole) and, where there are sums over rows, programs a
multiprocessor. bfloat16, everything in turns in one run; compiled in parallel first.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
from pathlib import Path
from typing import Any

import torch
from gpu_time import Call, rotations_for, times_of
from liger_ops import OPS, load_generated, make_input

SIZES = [(65536, 128), (65536, 1024), (16384, 4096), (4096, 16384), (2048, 32768), (1024, 131072)]
OPS_MEASURED = ["softmax", "rms_norm", "layer_norm", "dyt"]
TILES = [2048, 4096, 8192]
ELEMENTS_A_THREAD = [4, 8, 16, 32]
BLOCKS = [2048, 4096, 8192, 16384, 32768]
PROGRAMS = [1, 2, 4]
WORKERS = 12
REPEATS = 7


def settings(columns: int) -> list[tuple[int, int, int]]:
    """(BLOCK_ROWS, BLOCK_SIZE, num_warps) to try for rows of this length."""
    whole = 1 << (columns - 1).bit_length()
    found = []
    blocks = [whole] if whole <= 4096 else sorted({min(block, whole) for block in BLOCKS})
    for block in blocks:
        if block < whole and columns <= 8192:
            continue
        rows = sorted({max(1, tile // block) for tile in TILES}) if block == whole else [1]
        for block_rows, elements in itertools.product(rows, ELEMENTS_A_THREAD):
            warps = block_rows * block // 32 // elements
            if 1 <= warps <= 32:
                found.append((block_rows, block, warps))
    return found


def calls(name: str, rows: int, columns: int, folder: Path, rotations: int) -> tuple[dict[str, Call], dict[str, Call]]:
    module = load_generated(name, folder)
    op = OPS[name]
    values = [[make_input(kind, rows, columns).detach() for kind in op.inputs] for _ in range(rotations)]
    made = []
    function = module.LigerGeneratedFunction
    for inputs in values:
        inputs = [x.requires_grad_(x.is_floating_point()) for x in inputs]
        output = function.apply(*inputs)
        output = output if isinstance(output, torch.Tensor) else output[0]
        upstream = torch.randn_like(output) if output.dim() else torch.ones_like(output)
        made.append((output, inputs, upstream))

    def configured(setting: tuple[int, int, int], programs: int) -> None:
        count = torch.cuda.get_device_properties("cuda").multi_processor_count * programs
        module._row_settings = module._tile_settings = lambda *_: setting
        module._max_programs = lambda *_: count

    def forward(i: int, setting: tuple[int, int, int]) -> Any:
        configured(setting, 1)
        return function.apply(*values[i])

    def backward(i: int, setting: tuple[int, int, int], programs: int) -> Any:
        configured(setting, programs)
        output, inputs, upstream = made[i]
        wanted = [x for x in inputs if x.requires_grad]
        return torch.autograd.grad(output, wanted, upstream, retain_graph=True)

    counts = PROGRAMS if hasattr(module, "_max_programs") else [1]
    every = settings(columns)
    forwards = {key(s, 1): lambda i, s=s: forward(i, s) for s in every}  # type: ignore[misc]
    backwards = {
        key(s, p): lambda i, s=s, p=p: backward(i, s, p)  # type: ignore[misc]
        for s, p in itertools.product(every, counts)
    }
    return forwards, backwards


def key(setting: tuple[int, int, int], programs: int) -> str:
    block_rows, block, warps = setting
    return f"{block_rows}x{block}/{warps}w" + (f"/{programs}p" if programs > 1 else "")


def warm(task: tuple[str, int, int, str]) -> str:
    name, rows, columns, folder = task
    try:
        forward, backward = calls(name, rows, columns, Path(folder), 1)
        for call in (*forward.values(), *backward.values()):
            call(0)
        torch.cuda.synchronize()
    except Exception as problem:
        return f"{name} {rows}x{columns}: {type(problem).__name__}: {problem}"
    return ""


def measure(name: str, rows: int, columns: int, folder: Path) -> dict[str, Any]:
    rotations = rotations_for(rows * columns * 2 * OPS[name].forward)
    forward, backward = calls(name, rows, columns, folder, rotations)
    result: dict[str, Any] = {"op": name, "rows": rows, "columns": columns}
    for mode, candidates in (("forward", forward), ("backward", backward)):
        result[mode] = {key: round(t.gpu, 5) for key, t in times_of(candidates, rotations, REPEATS).items()}
        best = min(result[mode].values())
        near = sorted(result[mode].items(), key=lambda item: item[1])[:9]
        text = "  ".join(f"{key} {ms / best:.2f}" for key, ms in near)
        print(f"{name} {rows}x{columns} {mode[:3]} {best:.4f} ms: {text}", flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--ops", nargs="*", default=OPS_MEASURED)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.ops:
        load_generated(name, options.folder)
    tasks = [(name, *size, str(options.folder)) for name in options.ops for size in SIZES]
    with multiprocessing.get_context("spawn").Pool(WORKERS) as pool:
        for problem in filter(None, pool.imap_unordered(warm, tasks)):
            print(problem, flush=True)
    results = []
    for name, rows, columns, folder in tasks:
        results.append(measure(name, rows, columns, Path(folder)))
        torch.cuda.empty_cache()
        if options.json:
            options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
