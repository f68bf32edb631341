"""What is imported before a job runs: torch, Triton and its interpreter, and most of the jobs' code.

Nothing here may start a thread or touch a GPU: a forked child would have neither, or a broken one.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import sys

from tigon_tools.execution import missing
from tigon_tools.gpus import has_cuda_context, hide_gpus
from tigon_tools.jobs import JOBS
from tigon_tools.schema.errors import JobFailure

_threads_of_a_job: int | None = None


def import_torch(interpret: bool) -> JobFailure | None:
    """Import torch, and Triton's interpreter where it is asked for. None, or why it cannot be."""
    if interpret:
        hide_gpus()
    # numpy's OpenBLAS starts its threads when it is imported; no job is bound by it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        import torch  # noqa: F401
    except Exception as problem:  # a torch that lacks a library raises OSError
        return missing("torch", problem)
    if interpret and importlib.util.find_spec("triton") is not None:
        from tigon_tools.interpreter import UnknownTriton, activate

        try:
            activate()
        except UnknownTriton as problem:
            return JobFailure("unsupported", str(problem))
        except ImportError as problem:
            return missing(problem.name or "numpy", problem)
    return None


def warm_up(interpret: bool) -> JobFailure | None:
    """Everything that jobs share, once, in the process that forks them. None, or why it cannot be."""
    global _threads_of_a_job
    refused = import_torch(interpret)
    if refused is not None:
        return refused
    import torch

    # No pool of threads here, it would not survive the fork; a job gets the number back.
    _threads_of_a_job = torch.get_num_threads()
    torch.set_num_threads(1)
    for job in JOBS.values():
        try:
            importlib.import_module(job.module)
        except Exception as problem:  # one job that is broken must not take the others with it
            print(f"job {job.name} cannot be imported: {problem}", file=sys.stderr)
    if interpret:  # traces are made there only, and only there may one be: see `gpus`
        _trace_once()
    if threads() > 1 or has_cuda_context():
        print(
            f"{threads()} threads and {'a' if has_cuda_context() else 'no'} CUDA context before the first "
            "fork; a job may hang or fail for it. TIGON_JOBS=spawn does without fork.",
            file=sys.stderr,
        )
    gc.collect()
    gc.freeze()  # a collection in a child must not copy every page that it only looks at
    return None


def _trace_once() -> None:
    """The first trace of a process costs 1.4 s more than the next: torch registers its decompositions."""
    from tigon_tools.schema.reference import InputSpec, Reference, TraceRequest
    from tigon_tools.trace import trace_job

    code = "import torch\n\n\ndef f(x):\n    return torch.tanh(x) * x\n"
    try:
        trace_job.run(TraceRequest(Reference(code, "f", inputs=(InputSpec("x", (2, 3)),))))
    except Exception as problem:  # the job itself will say what is wrong
        print(f"no trace before the first job: {problem}", file=sys.stderr)


def threads() -> int:
    """Threads of this process; 1 where the system does not say."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 1


def restore_threads() -> None:
    """In a forked child: as many threads for torch as it would have had in a process of its own."""
    if _threads_of_a_job is not None:
        sys.modules["torch"].set_num_threads(_threads_of_a_job)
