"""Generated kernels beside Liger's, torch.compile and eager PyTorch; on a GPU.

    python benchmarks/codegen_vs_liger.py --folder FOLDER [--csv FILE] [--ops NAME ...]

GPU time and host time of forward and backward of every op and size of `liger_ops`, in bfloat16, all four taking turns
in one run. Needs torch, Triton, liger-kernel and `tools/` on PYTHONPATH. Compiles everything in parallel first. A
candidate that cannot run a size is left out there, and named.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from gpu_time import Call, backward_of, copy_tb_s, rotations_for, times_of, write_table
from liger_ops import OPS, SIZES, eager, load_generated, make_input

OTHERS = ("liger", "compile", "eager")
WORKERS = 12


def candidates(name: str, folder: Path) -> dict[str, Callable[..., Any]]:
    reference = eager(name)
    return {
        "tigon": load_generated(name, folder).LigerGeneratedFunction.apply,
        "liger": OPS[name].liger,
        "compile": torch.compile(reference, dynamic=False),
        "eager": reference,
    }


def passes(name: str, rows: int, columns: int, folder: Path) -> tuple[dict[str, Call], dict[str, Call], int]:
    """Forward and backward of every candidate, and how many sets of inputs they rotate over."""
    import torch._functorch.config

    torch._functorch.config.donated_buffer = False  # a backward is repeated, so its buffers stay
    op = OPS[name]
    rotations = rotations_for(rows * columns * 2 * op.forward)
    values = [[make_input(kind, rows, columns) for kind in op.inputs] for _ in range(rotations)]
    forward: dict[str, Call] = {}
    backward: dict[str, Call] = {}
    for key, function in candidates(name, folder).items():
        try:
            backward[key] = backward_of(function, values)
            backward[key](0)
            torch.cuda.synchronize()
        except Exception as problem:
            backward.pop(key, None)
            print(f"{name} {rows}x{columns}: {key} is left out: {type(problem).__name__}: {problem}", flush=True)
            continue
        forward[key] = lambda i, f=function: f(*values[i])  # type: ignore[misc]
    return forward, backward, rotations


def warm(task: tuple[str, int, int, str]) -> str:
    """Compile what this op and size need, in a process of its own; the caches are shared."""
    name, rows, columns, folder = task
    try:
        forward, backward, _ = passes(name, rows, columns, Path(folder))
        for call in (*forward.values(), *backward.values()):
            call(0)
        torch.cuda.synchronize()
    except Exception as problem:
        return f"{name} {rows}x{columns}: {type(problem).__name__}: {problem}"
    return ""


def measure(name: str, rows: int, columns: int, folder: Path) -> list[dict[str, Any]]:
    """A line of the table for each pass and candidate."""
    torch._dynamo.reset()
    forward, backward, rotations = passes(name, rows, columns, folder)
    op, ceiling, lines = OPS[name], copy_tb_s(), []
    for mode, calls, moved in (("forward", forward, op.forward), ("backward", backward, op.backward)):
        for provider, time in times_of(calls, rotations).items():
            share = moved * rows * columns * 2 / time.gpu / 1e9 / ceiling
            lines.append(
                {
                    "op": name, "rows": rows, "columns": columns, "pass": mode, "provider": provider,
                    "gpu_us": round(time.gpu * 1e3, 2), "host_us": round(time.host * 1e3, 2),
                    "share_of_copy": round(share, 3), "copy_tb_s": round(ceiling, 3),
                }
            )  # fmt: skip
    return lines


def ratio(lines: list[dict[str, Any]], other: str, mode: str) -> float | None:
    """The generated kernel's GPU time over another's, of one op and size; "both" is the sum of the passes."""
    modes = ("forward", "backward") if mode == "both" else (mode,)
    times = {(line["pass"], line["provider"]): line["gpu_us"] for line in lines}
    if any((m, provider) not in times for m in modes for provider in ("tigon", other)):
        return None
    return float(sum(times[m, "tigon"] for m in modes) / sum(times[m, other] for m in modes))


def report(lines: list[dict[str, Any]]) -> None:
    first = lines[0]
    print(f"{first['op']:18} {first['rows']}x{first['columns']}", end="")
    for line in lines:
        if line["provider"] == "tigon":
            ratios = " ".join(f"{o[:1]} {ratio(lines, o, line['pass']) or math.nan:.2f}" for o in OTHERS)
            print(f" | {line['pass'][:3]} {line['gpu_us']:.1f} us share {line['share_of_copy']:.2f} {ratios}", end="")
    print(f" | both l {ratio(lines, 'liger', 'both') or math.nan:.2f}", flush=True)


def summary(results: list[list[dict[str, Any]]]) -> None:
    for other in OTHERS:
        for mode in ("forward", "backward", "both"):
            ratios = [r for lines in results if (r := ratio(lines, other, mode)) is not None]
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"over {other:8} {mode:9} geometric mean {mean:.3f}  worst {max(ratios):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--ops", nargs="*", default=list(OPS))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    tasks = [(name, *size, str(options.folder)) for name in options.ops for size in SIZES]
    for name in options.ops:
        load_generated(name, options.folder)
    with multiprocessing.get_context("spawn").Pool(WORKERS) as pool:
        for problem in filter(None, pool.imap_unordered(warm, tasks)):
            print(problem, flush=True)
    results = []
    for name, rows, columns, folder in tasks:
        results.append(measure(name, rows, columns, Path(folder)))
        report(results[-1])
        torch.cuda.empty_cache()
        if options.csv:
            write_table(options.csv, [line for lines in results for line in lines])
    summary(results)


if __name__ == "__main__":
    main()
