"""How long a job may run and how much memory it may take, by job."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """seconds: wall clock. memory_mib: resident memory of the job's process and all below it.

    A process starts with the 300 MiB of torch that it was forked with.
    """

    seconds: float
    memory_mib: int


DEFAULT = Limits(seconds=120, memory_mib=4096)
"""A trace takes seconds and 400 MiB; the rest is room for large references."""

BY_JOB = {
    # Liger's own test files take minutes in the interpreter, and import transformers (1.5 GiB). The job
    # stops itself at the request's `max_seconds` (900 by default) and says which tests were cut off;
    # this is for a job that does not.
    "unit_tests": Limits(seconds=1200, memory_mib=8192),
    # Two processes with torch each; cases are small on a CPU.
    "judge": Limits(seconds=600, memory_mib=8192),
    # Importing transformers from a cold disk takes a minute.
    "import": Limits(seconds=180, memory_mib=4096),
    # Versions are read from files; a first look at a GPU takes seconds.
    "machine": Limits(seconds=60, memory_mib=2048),
}
