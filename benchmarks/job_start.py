"""How long a job takes to start: from the server's `run()` to the first line of the job's code.

    python benchmarks/job_start.py                      # the interpreter that has torch: TIGON_PYTHON, or this one
    python benchmarks/job_start.py --rounds 100

A forked child of the warm parent, beside a fresh process for each job, which imports torch and repairs
Triton's interpreter first. Both are measured in the same run, in turn. Exit status 1 where the median of
the forked ones is above the limit.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import time
from pathlib import Path

from first_line_job import NAME, Answer, Request

from tigon.jobs.runner import JobRunner

LIMIT_MS = 150.0
"""What a person does not notice: the sum of a round trip to an assistant is seconds."""


async def milliseconds_to_start(runner: JobRunner) -> float:
    called = time.monotonic()
    answer = await runner.run(NAME, Request())
    assert isinstance(answer, Answer)
    return (answer.seconds - called) * 1000


async def measure(rounds: int, spawned_each: int) -> dict[str, list[float]]:
    """Milliseconds by way of starting; one spawned job for every `spawned_each` forked ones."""
    forked, spawned = (JobRunner(extra_jobs="first_line_job", spawn=spawn) for spawn in (False, True))
    taken: dict[str, list[float]] = {"forked": [], "spawned": []}
    try:
        for runner in (forked, spawned):  # starts the parents, and fills the disk's cache
            await milliseconds_to_start(runner)
        for number in range(rounds):
            taken["forked"].append(await milliseconds_to_start(forked))
            if number % spawned_each == 0:
                taken["spawned"].append(await milliseconds_to_start(spawned))
    finally:
        await forked.close()
        await spawned.close()
    return taken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=50)
    options = parser.parse_args()
    path = [str(Path(__file__).resolve().parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(path)
    taken = asyncio.run(measure(options.rounds, spawned_each=10))
    for name, values in taken.items():
        print(
            f"{name:8} min {min(values):7.1f} ms, median {statistics.median(values):7.1f} ms, "
            f"max {max(values):7.1f} ms, {len(values)} jobs"
        )
    median = statistics.median(taken["forked"])
    print(f"{'within' if median <= LIMIT_MS else 'ABOVE'} the limit of {LIMIT_MS:.0f} ms once warm")
    return 0 if median <= LIMIT_MS else 1


if __name__ == "__main__":
    sys.exit(main())
