"""How long a client waits for Tigon's first `tools/list` answer, beside hotkernel 0.1.1.

    python benchmarks/startup.py                       # makes two environments in a temporary folder
    python benchmarks/startup.py --tigon .venv/bin/python --hotkernel PYTHON --rounds 20

Spawn to answer, over stdio, as a client sees it. The two are started in turn in each round, the first one
alternating, so that what else the machine does falls on both. The figure is the median of the rounds' ratios,
with a bootstrap interval. One round before the first is thrown away: it byte-compiles and fills the cache.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

HOTKERNEL = "hotkernel==0.1.1"
LIMIT = 1.0
"""Largest ratio that we accept: no later than hotkernel."""
RESAMPLES = 2000
ROOT = Path(__file__).resolve().parent.parent
SERVE = {"tigon": ["-m", "tigon", "serve"], "hotkernel": ["-m", "hotkernel.server"]}

INITIALIZE: list[dict[str, Any]] = [
    {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "startup", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
]
MODERN: list[dict[str, Any]] = [
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/list",
        "params": {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "startup", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        },
    }
]
ERAS = {"2025-11-25": INITIALIZE, "2026-07-28": MODERN}


def seconds_to_tools(python: Path, server: str, messages: list[dict[str, Any]]) -> float:
    """Spawn a server, send what the era sends, and wait for the answer to `tools/list`."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [python, *SERVE[server]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        for message in messages:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            if "id" not in message:
                continue
            answer = json.loads(process.stdout.readline())
            if answer.get("id") != message["id"] or "result" not in answer:
                raise SystemExit(f"{server} answered {message['method']} with {answer}")
        assert answer["result"]["tools"], f"{server} lists no tools"
        return time.perf_counter() - started
    finally:
        process.stdin.close()
        process.kill()
        process.wait()


def measure(pythons: dict[str, Path], era: str, rounds: int) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {server: [] for server in pythons}
    order = list(pythons)
    for round_number in range(rounds + 1):
        for server in order:
            taken = seconds_to_tools(pythons[server], server, ERAS[era])
            if round_number > 0:
                seconds[server].append(taken)
        order.reverse()
    return seconds


def median_ratio(seconds: dict[str, list[float]]) -> tuple[float, float, float]:
    """Median of tigon / hotkernel by round, and its 95 % bootstrap interval."""
    ratios = [ours / theirs for ours, theirs in zip(seconds["tigon"], seconds["hotkernel"], strict=True)]
    rng = random.Random(0)
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES))
    return statistics.median(ratios), medians[int(0.025 * RESAMPLES)], medians[int(0.975 * RESAMPLES)]


def make_environment(folder: Path, requirement: str) -> Path:
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", requirement], check=True)
    return python


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tigon", type=Path, metavar="PYTHON", help="an interpreter that has tigon")
    parser.add_argument("--hotkernel", type=Path, metavar="PYTHON", help="an interpreter that has hotkernel")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tigon-startup-") as folder:
        pythons = {
            "tigon": options.tigon or make_environment(Path(folder, "tigon"), str(ROOT)),
            "hotkernel": options.hotkernel or make_environment(Path(folder, "hotkernel"), HOTKERNEL),
        }
        worst = 0.0
        for era in ERAS:
            seconds = measure(pythons, era, options.rounds)
            ratio, low, high = median_ratio(seconds)
            medians = {server: statistics.median(taken) for server, taken in seconds.items()}
            print(
                f"{era}: tigon {medians['tigon']:.3f} s, hotkernel {medians['hotkernel']:.3f} s, "
                f"ratio {ratio:.2f} (95 % {low:.2f} to {high:.2f}), {options.rounds} rounds",
                flush=True,
            )
            worst = max(worst, ratio)
    print(f"{'within' if worst <= LIMIT else 'ABOVE'} the limit of {LIMIT:.1f}")
    return 0 if worst <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
