"""Jobs that do what a kernel or a reference may do: end, crash, hang, grow, print, fork.

A parent loads this module with `--jobs misbehaving_jobs`; Tigon ships none of them.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tigon_tools.jobs import JOBS, Job, Progress
from tigon_tools.schema.errors import JobError

NAME = "misbehave"
SECRET = "hf_qWeRtYuIoPaSdFgH"
MIB = 2**20


@dataclass(frozen=True)
class Request:
    """what: one of the functions below. path: of a FIFO or folder, where it needs one."""

    what: str
    path: str = ""


@dataclass(frozen=True)
class Answer:
    """started: `time.monotonic()` at the first line of the job."""

    text: str
    started: float


JOBS[NAME] = Job(NAME, Request, Answer, __name__)


def run(request: Request, progress: Progress) -> Answer:
    started = time.monotonic()
    if request.what == "unsendable":
        return Answer({1, 2}, started)  # type: ignore[arg-type]
    return Answer(str(globals()[request.what](request.path, progress)), started)


def nothing(path: str, progress: Progress) -> str:
    return ""


def segfault(path: str, progress: Progress) -> None:
    ctypes.string_at(0)


def segfault_after_a_secret(path: str, progress: Progress) -> None:
    print(f"downloading with HF_TOKEN={SECRET}", flush=True)
    ctypes.string_at(0)


def leave(path: str, progress: Progress) -> None:
    os._exit(3)


def leave_silently(path: str, progress: Progress) -> None:
    os._exit(0)


def system_exit(path: str, progress: Progress) -> None:
    sys.exit("bye")


def killed(path: str, progress: Progress) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def explained(path: str, progress: Progress) -> None:
    raise JobError("bad_reference", "line 3 is wrong.", "Correct it.", 3)


def unexpected(path: str, progress: Progress) -> None:
    raise KeyError("surprise")


def grow(path: str, progress: Progress) -> None:
    """Touch memory, 32 MiB at a time, in a process below the job's own."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    held = []
    while True:
        held.append(b"x" * (32 * MIB))


def grow_at_once(path: str, progress: Progress) -> None:
    """More in one allocation than may be held; not touched, so that only a limit on what is asked for tells."""
    bytearray(6 * 1024 * MIB)


def loop(path: str, progress: Progress) -> None:
    while True:
        pass


def loop_in_handlers(path: str, progress: Progress) -> None:
    """Will not hear of anything but SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
        signal.signal(number, lambda *_: None)
    while True:
        pass


def prints(path: str, progress: Progress) -> str:
    """To every way out that could be the protocol's."""
    print('{"id": 1, "result": {}}', flush=True)
    sys.__stdout__.write("not json\n")  # type: ignore[union-attr]
    os.write(1, b'{"ready": false}\n' * 1000)
    os.write(2, b"\xff\xfe not utf-8\n")
    subprocess.run([sys.executable, "-c", "print('from below')"], check=True)
    return "printed"


def floods(path: str, progress: Progress) -> str:
    for _ in range(4096):
        os.write(1, b"x" * 1023 + b"\n")
    return "printed"


def writes_everywhere(path: str, progress: Progress) -> None:
    for fd in range(3, 64):
        try:
            os.write(fd, b"\x00garbage\n")
        except OSError:
            continue


def open_files(path: str, progress: Progress) -> str:
    """What else of the parent's could be reached: kinds of the open file descriptors above stderr."""
    names = []
    for fd in os.listdir("/proc/self/fd"):
        if int(fd) > 2:
            try:
                names.append(os.readlink(f"/proc/self/fd/{fd}").split(":")[0])
            except FileNotFoundError:
                continue
    return json.dumps(sorted(names))


def files_of_parent(path: str, progress: Progress) -> str:
    return str(len(os.listdir(f"/proc/{os.getppid()}/fd")))


def environment(path: str, progress: Progress) -> str:
    return json.dumps(dict(os.environ))


def about_itself(path: str, progress: Progress) -> str:
    from tigon_tools.interpreter import is_active

    leads = os.getpid() == os.getsid(0) == os.getpgid(0)
    return json.dumps({"stdin": repr(os.read(0, 100)), "leads its session": leads, "interprets": is_active()})


def parent(path: str, progress: Progress) -> str:
    return str(os.getppid())


def threads_of_parent(path: str, progress: Progress) -> str:
    return str(len(os.listdir(f"/proc/{os.getppid()}/task")))


def computes(path: str, progress: Progress) -> str:
    """Large enough for torch's pool of threads, in a process that was forked."""
    import torch

    torch.manual_seed(0)
    a = torch.randn(512, 512, requires_grad=True)
    (a @ a).sigmoid().sum().backward()
    return json.dumps({"threads": torch.get_num_threads(), "finite": bool(torch.isfinite(a.grad).all())})


def computes_on_gpu(path: str, progress: Progress) -> str:
    """A Triton kernel, compiled; and whether this process had to make its own CUDA context."""
    import torch
    from gpu_kernel import double

    fresh = not torch.cuda.is_initialized()
    x = torch.arange(1000, device="cuda", dtype=torch.float32)
    return json.dumps({"fresh": fresh, "right": torch.equal(double(x), 2 * x)})


def sees_a_gpu(path: str, progress: Progress) -> str:
    import torch

    return str(torch.cuda.is_available())


def writes_outside_on_gpu(path: str, progress: Progress) -> None:
    import torch
    from gpu_kernel import store_far_away

    store_far_away(torch.zeros(16, device="cuda"))
    torch.cuda.synchronize()


def fills_the_gpu(path: str, progress: Progress) -> None:
    import torch

    held = []
    while True:
        held.append(torch.empty(2**33, dtype=torch.uint8, device="cuda"))


def reports(path: str, progress: Progress) -> str:
    progress("first", 0.25)
    progress("second", 1.0)
    return "reported"


def long_answer(path: str, progress: Progress) -> str:
    return "ü" * 3_000_000


def working_folder(path: str, progress: Progress) -> str:
    return os.getcwd()


def leaves_processes(path: str, progress: Progress) -> str:
    """One in the group, one that left it and is an orphan; their pids. Both outlive the job if they can."""
    return json.dumps(_start_processes())


def leaves_processes_and_crashes(path: str, progress: Progress) -> None:
    Path(path).write_text(json.dumps(_start_processes()))
    os._exit(3)


def hangs(path: str, progress: Progress) -> None:
    """As above, but the pids go through a FIFO, with the job's own, and the job does not end."""
    pids = [os.getpid(), *_start_processes()]
    Path(path).write_text(json.dumps(pids))
    while True:
        time.sleep(1)


def meets(path: str, progress: Progress) -> str:
    """End when three of these run at once."""
    Path(path, str(os.getpid())).touch()
    while len(os.listdir(path)) < 3:
        os.sched_yield()
    return "met"


def _start_processes() -> list[int]:
    in_group = subprocess.Popen(["sleep", "600"]).pid
    read, write = os.pipe()
    middle = os.fork()
    if middle == 0:
        os.setsid()
        orphan = subprocess.Popen(["sleep", "600"], start_new_session=True).pid
        os.write(write, str(orphan).encode())
        os._exit(0)
    os.waitpid(middle, 0)
    return [in_group, int(os.read(read, 20))]
