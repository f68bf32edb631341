"""How a launch over rows is best cut up: the tile, its warps, programs on a multiprocessor, stages; on a GPU.

    python benchmarks/row_launch.py --folder FOLDER [--csv FILE] [--ops NAME ...]

For `liger_ops` at its sizes: GPU time of the generated forward and backward under each setting, in bfloat16, everything
in turns in one run; compiled in parallel first. Settings replace what the file's own launch functions would choose.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from gpu_time import backward_of, rotations_for, times_of, write_table
from liger_ops import OPS, SIZES, load_generated, make_input

OPS_MEASURED = [
    "softmax",
    "rms_norm",
    "fused_add_rms_norm",
    "layer_norm",
    "poly_norm",
    "dyt",
    "kl_div",
    "tvd",
    "jsd",
    "cross_entropy",
]
TILES = [1024, 2048, 4096]
ELEMENTS_A_THREAD = [4, 8, 16, 32]
WARPS = [16, 32, 64]
"""On a multiprocessor, of the programs that make partial sums."""
STAGES = [1, 3]
TILE_SHAPES = [(1, 1024), (2, 1024), (4, 1024), (1, 2048), (8, 256), (16, 128)]
WORKERS = 12
REPEATS = 5


@dataclass(frozen=True)
class Setting:
    """One way to launch. warps_each: of the multiprocessor; it and stages matter for partial sums alone."""

    block_rows: int
    block_size: int
    num_warps: int
    warps_each: int = 0
    stages: int = 1

    def apply(self, module: ModuleType) -> None:
        properties = torch.cuda.get_device_properties("cuda")
        programs = properties.multi_processor_count * max(self.warps_each // self.num_warps, 1)
        for name in ("_row_settings", "_tile_settings"):
            if hasattr(module, name):
                setattr(module, name, lambda *_: (self.block_rows, self.block_size, self.num_warps))
        module._max_programs = lambda *_: programs  # type: ignore[attr-defined]
        module._num_stages = lambda *_: self.stages  # type: ignore[attr-defined]

    def __str__(self) -> str:
        sums = f"/{self.warps_each}a/{self.stages}s" if self.warps_each else ""
        return f"{self.block_rows}x{self.block_size}/{self.num_warps}w{sums}"


def settings(columns: int, whole: bool, sums: bool) -> Iterator[Setting]:
    """whole: a program has whole rows. sums: it makes partial sums."""
    longest = 1 << (columns - 1).bit_length()
    shapes = {(max(1, tile // longest), longest) for tile in TILES} if whole else set(TILE_SHAPES)
    for (rows, block), elements in itertools.product(sorted(shapes), ELEMENTS_A_THREAD):
        warps = rows * block // 32 // elements
        if not 1 <= warps <= 32 or block > longest:
            continue
        for warps_each, stages in itertools.product(WARPS, STAGES) if sums else [(0, 1)]:
            if warps <= max(warps_each, 16):
                yield Setting(rows, block, warps, warps_each, stages)


Measured = dict[str, Callable[[int], Any]]


def calls(name: str, rows: int, columns: int, folder: Path, rotations: int) -> dict[str, Measured]:
    """By pass and setting."""
    module, source = load_generated(name, folder), (folder / f"generated_{name}.py").read_text()
    function = module.LigerGeneratedFunction
    values = [[make_input(kind, rows, columns) for kind in OPS[name].inputs] for _ in range(rotations)]
    again = backward_of(function.apply, values)

    def forward(i: int, setting: Setting) -> Any:
        setting.apply(module)
        return function.apply(*values[i])

    def backward(i: int, setting: Setting) -> Any:
        setting.apply(module)
        return again(i)

    found: dict[str, Measured] = {}
    for mode, call in (("forward", forward), ("backward", backward)):
        launcher = source.split(f"def {name}_{mode}(")[1].split("\ndef ")[0]
        ways = settings(columns, "_row_settings" in launcher, "_max_programs" in launcher)
        found[mode] = {str(way): lambda i, call=call, way=way: call(i, way) for way in ways}  # type: ignore[misc]
    return found


def warm(task: tuple[str, int, int, str]) -> str:
    name, rows, columns, folder = task
    problems = []
    for mode, ways in calls(name, min(rows, 64), columns, Path(folder), 1).items():
        for way, call in ways.items():
            try:
                call(0)
            except Exception as problem:
                problems.append(f"{name} {columns} {mode} {way}: {type(problem).__name__}")
    return "\n".join(problems)


def measure(name: str, rows: int, columns: int, folder: Path) -> list[dict[str, Any]]:
    rotations = rotations_for(rows * columns * 2 * OPS[name].forward)
    lines = []
    for mode, ways in calls(name, rows, columns, folder, rotations).items():
        times = {way: t.gpu * 1e3 for way, t in times_of(_that_run(ways), rotations, REPEATS).items()}
        best = min(times.values())
        near = sorted(times.items(), key=lambda item: item[1])[:9]
        text = "  ".join(f"{way} {us / best:.2f}" for way, us in near)
        print(f"{name} {rows}x{columns} {mode[:3]} {best:.1f} us: {text}", flush=True)
        lines += [
            {"op": name, "rows": rows, "columns": columns, "pass": mode, "setting": way, "gpu_us": round(us, 2)}
            for way, us in times.items()
        ]
    return lines


def _that_run(ways: Measured) -> Measured:
    """A tile may need more shared memory than there is."""
    found = {}
    for way, call in ways.items():
        try:
            call(0)
            found[way] = call
        except Exception as problem:
            print(f"{way} is left out: {type(problem).__name__}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--ops", nargs="*", default=OPS_MEASURED)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.ops:
        load_generated(name, options.folder)
    tasks = [(name, *size, str(options.folder)) for name in options.ops for size in SIZES]
    with multiprocessing.get_context("spawn").Pool(WORKERS) as pool:
        for problem in filter(None, pool.imap_unordered(warm, tasks)):
            print(problem, flush=True)
    lines = []
    for name, rows, columns, folder in tasks:
        lines += measure(name, rows, columns, Path(folder))
        torch.cuda.empty_cache()
        if options.csv:
            write_table(options.csv, lines)


if __name__ == "__main__":
    main()
