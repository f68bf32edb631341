"""Why a job's process ended without a result, in a sentence: a signal, an exit code, a limit."""

from __future__ import annotations

import os
import signal

from tigon_tools.redaction import redact
from tigon_tools.schema.errors import JobFailure

_LONGEST_QUOTE = 300
"""Characters of a job's last words that a message holds."""


def out_of_time(name: str, seconds: float) -> JobFailure:
    return JobFailure(
        "timeout",
        f"job {name} was stopped after its time limit of {seconds:g} s.",
        "Look for an endless loop, or use smaller shapes.",
    )


def out_of_memory(name: str, held_mib: float, memory_mib: int) -> JobFailure:
    return JobFailure(
        "memory",
        f"job {name} was stopped with {held_mib:.0f} MiB of memory; its limit is {memory_mib} MiB.",
        "Use smaller shapes, or look for what keeps growing.",
    )


def cancelled(name: str) -> JobFailure:
    return JobFailure("cancelled", f"job {name} was cancelled.", "Call again to run it.")


def no_message(name: str, why: str) -> JobFailure:
    return JobFailure(
        "crashed",
        f"job {name} was stopped: {why}.",
        "Something it ran wrote to the pipe that its result goes through; a reference or kernel must not.",
    )


def died(name: str, status: int, printed: bytes, out_of_memory_kills: int) -> JobFailure:
    """What the wait status of a process says.

    printed: the end of what the job printed; its last line is quoted, without what looks secret.
    out_of_memory_kills: how many processes the kernel killed for lack of memory while the job ran.
    """
    said = _last_words(printed)
    if not os.WIFSIGNALED(status):
        code = os.waitstatus_to_exitcode(status)
        return JobFailure(
            "crashed",
            f"job {name} ended with exit code {code} and no result.{said}",
            "Something it ran called exit(); a reference or kernel must not.",
        )
    number = os.WTERMSIG(status)
    if number != signal.SIGKILL:
        return JobFailure(
            "crashed",
            f"job {name} crashed with {_name(number)} (signal {number}).{said}",
            "A kernel reads or writes outside its tensors, or native code failed; look at masks and offsets.",
        )
    if out_of_memory_kills > 0:
        return JobFailure(
            "memory",
            f"job {name} was killed by the kernel (SIGKILL): the machine ran out of memory.{said}",
            "Use smaller shapes, or give the machine more memory.",
        )
    return JobFailure(
        "crashed",
        f"job {name} was killed from outside (SIGKILL).{said}",
        "Call again; if it happens again, look for what ends it: a container's memory limit, or a person.",
    )


def out_of_memory_kills() -> int:
    """The kernel's count since boot; 0 where it does not say."""
    try:
        with open("/proc/vmstat") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("oom_kill ")), 0)
    except OSError:
        return 0


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "a real-time signal"


def _last_words(printed: bytes) -> str:
    lines = redact(printed.decode(errors="replace")).strip().splitlines()
    return f" It last wrote: {lines[-1][:_LONGEST_QUOTE]}" if lines else ""
