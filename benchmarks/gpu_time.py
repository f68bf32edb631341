"""GPU time and host time of calls side by side, what a copy reaches in the same run, and their table; torch only."""

from __future__ import annotations

import csv
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

L2_BYTES = 60 * 2**20
"""Of an H200; inputs rotate over three times that."""

REPEATS = 11
WAIT_CYCLES = 6_000_000
"""The GPU waits about 3 ms while the queue fills, so that launches cost nothing."""

Call = Callable[[int], object]
"""Takes the number of the inputs to use."""


@dataclass(frozen=True)
class Time:
    """Of one call, in milliseconds: what the GPU works, and what the host takes to get it going."""

    gpu: float
    host: float


def rotations_for(bytes_each: int) -> int:
    """How many sets of inputs of this size are beyond the L2."""
    return max(2, min(16, -(-3 * L2_BYTES // max(bytes_each, 1))))


def times_of(calls: dict[str, Call], rotations: int, repeats: int = REPEATS) -> dict[str, Time]:
    """Medians of each call; candidates take turns, inputs rotate."""
    for call in calls.values():
        for i in range(rotations):
            call(i)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    inner = max(rotations, 4)
    for _ in range(repeats):
        for name, call in calls.items():
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda._sleep(WAIT_CYCLES)
            start.record()
            began = time.perf_counter()
            for i in range(inner):
                call(i % rotations)
            host = time.perf_counter() - began
            end.record()
            torch.cuda.synchronize()
            times[name].append((start.elapsed_time(end) / inner, host * 1e3 / inner))
    return {name: Time(*map(statistics.median, zip(*values, strict=True))) for name, values in times.items()}


def copy_tb_s() -> float:
    """Bytes read and written a second by a copy of 512 MiB, in TB/s."""
    source = torch.empty(2**29, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() / times_of({"copy": lambda i: target.copy_(source)}, 1)["copy"].gpu / 1e9


def backward_of(function: Callable[..., Any], inputs: Sequence[Sequence[torch.Tensor]]) -> Call:
    """The backward alone, again and again, of a forward that runs once for each set of inputs."""
    graphs = []
    for values in inputs:
        result = function(*values)
        outputs = [result] if isinstance(result, torch.Tensor) else list(result)
        upstream = [torch.randn_like(output) if output.dim() else torch.ones_like(output) for output in outputs]
        graphs.append((outputs, [x for x in values if x.requires_grad], upstream))
    return lambda i: torch.autograd.grad(*graphs[i], retain_graph=True)


def write_table(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """As CSV, with the columns of the first line."""
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, list(lines[0]))
        table.writeheader()
        table.writerows(lines)
