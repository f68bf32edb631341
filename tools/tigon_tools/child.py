"""The process of one job: it runs the job, writes what happened to one pipe, and ends.

Forked from the warm parent, or started afresh (`--spawn`) where fork is not to be had. Whatever it
prints goes to a pipe of its own, never to the protocol.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

from tigon_tools.execution import execute, failed
from tigon_tools.warm_up import import_torch

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_OOM_SCORE_FIRST = "1000"
"""The kernel's scale ends at 1000: if memory runs out after all, the job goes, not the editor."""

_HARD_LIMIT_FACTOR = 2
"""Private memory that a job may ask for, as a multiple of what it may hold. The parent looks at what is
held ten times a second; this stops a single allocation that is faster than that. Twice, because stacks
of threads and arenas are asked for and never touched."""


def run_job(name: str, request: Mapping[str, Any], fd: int) -> None:
    """Run a job and write its messages (JSON lines) to `fd`: progress, then a result or a failure."""

    def send(message: Mapping[str, Any]) -> None:
        view = memoryview(json.dumps(message).encode() + b"\n")
        while view:
            view = view[os.write(fd, view) :]

    def progress(text: str, fraction: float) -> None:
        send({"progress": [str(text), float(fraction)]})

    send({"started": True})
    send(execute(name, request, progress))


def interpreting() -> bool:
    """Whether Triton's kernels are interpreted in this process."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def isolate(parent: int) -> None:
    """Own session, no stdin, dies with the parent, first in line when memory runs out."""
    if os.getpid() != os.getsid(0):
        os.setsid()
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    if sys.platform == "linux":
        prctl = ctypes.CDLL(None).prctl
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        # What is orphaned below comes here, so that the parent finds it when it ends this job.
        prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            with open("/proc/self/oom_score_adj", "w") as score:
                score.write(_OOM_SCORE_FIRST)
        except OSError:
            pass  # a container may forbid it; the memory limit does not depend on it
    if os.getppid() != parent:
        os._exit(1)  # it died before it could take this process with it


def limit_memory(memory_mib: int) -> None:
    """A hard limit on private memory where no GPU is used: CUDA maps far more than it holds."""
    if sys.platform != "linux" or not interpreting():
        return
    import resource

    with open("/proc/self/status") as status:
        data_kib = next((int(line.split()[1]) for line in status if line.startswith("VmData:")), 0)
    limit = data_kib * 2**10 + _HARD_LIMIT_FACTOR * memory_mib * 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def main(arguments: list[str]) -> None:
    """`FD PARENT [EXTRA_JOBS]`; the message with the request is one JSON document on stdin."""
    fd, parent, *extra = arguments
    message = json.load(sys.stdin)
    isolate(int(parent))
    limit_memory(message["memory_mib"])
    for module in extra:
        importlib.import_module(module)
    refused = import_torch(interpreting())
    if refused is not None:
        os.write(int(fd), json.dumps(failed(refused)).encode() + b"\n")
    else:
        run_job(message["job"], message["request"], int(fd))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
