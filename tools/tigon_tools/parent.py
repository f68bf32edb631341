"""The warm parent: imports torch once, forks one child a job, and lets nothing outlive it.

    python -m tigon_tools.parent [--spawn] [--interpret] [--jobs MODULE]

Messages are JSON lines. In on stdin: `{"id", "job", "request", "seconds", "memory_mib"}` or
`{"cancel": id}`. Out on stdout: `{"ready": true}`, then for a job `{"id", "started", "pid"}`,
`{"id", "progress": [text, fraction]}` and one of `{"id", "result"}` and `{"id", "failure"}`.

Invariants:
- No thread and no CUDA context is made here, so that a forked child is whole.
- A job's process and everything below it die when the job ends, for whatever reason. Each job's
  process is the subreaper of what is below it, and this process is theirs: nothing slips away, and
  what comes here as an orphan belongs to a job that has ended.
- When stdin closes, the server is gone: everything is killed and this process ends.
- Nothing but messages is written to the stdout this process was given.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib
import json
import os
import selectors
import signal
import stat
import sys
import time
from typing import Any

from tigon_tools import child, job_end, job_process
from tigon_tools.job_process import BadMessage, JobProcess
from tigon_tools.message_lines import LineBuffer
from tigon_tools.process_tree import children, kill_tree, memory_mib
from tigon_tools.schema.errors import JobFailure
from tigon_tools.schema.wire import to_wire
from tigon_tools.warm_up import restore_threads, warm_up

WATCH_SECONDS = 0.1
"""Between looks at memory and time: at 5 GB/s a runaway allocation gains half a gigabyte in it."""

_PR_SET_CHILD_SUBREAPER = 36


class Parent:
    """Supervises jobs from one loop without threads."""

    def __init__(self, answers: int, *, spawn: bool, extra_jobs: str | None) -> None:
        self._answers = answers
        self._spawn = spawn
        self._extra_jobs = extra_jobs
        self._running: dict[int, JobProcess] = {}
        self._killed: set[int] = set()
        self._selector = selectors.DefaultSelector()
        self._requests = LineBuffer()
        self._wake = os.pipe()

    def serve(self) -> None:
        """Run until stdin closes."""
        for fd in self._wake:
            os.set_blocking(fd, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake[1], warn_on_full_buffer=False)
        self._selector.register(0, selectors.EVENT_READ)
        self._selector.register(self._wake[0], selectors.EVENT_READ)
        self.send({"ready": True})
        try:
            while self._step():
                pass
        except BrokenPipeError:
            pass  # nobody is left to answer
        finally:
            self._end_all()

    def send(self, message: dict[str, Any]) -> None:
        data = memoryview(json.dumps(message).encode() + b"\n")
        while data:
            data = data[os.write(self._answers, data) :]

    def _step(self) -> bool:
        for key, _ in self._selector.select(WATCH_SECONDS if self._running or self._killed else None):
            if key.fd == 0:
                if not self._read_requests():
                    return False
            elif key.fd == self._wake[0]:
                with contextlib.suppress(BlockingIOError):
                    os.read(key.fd, 4096)
            elif key.data.id in self._running:
                self._read_job(key.data, key.fd)
        for job in list(self._running.values()):
            self._watch(job)
        self._killed = {pid for pid in self._killed if _wait_status(pid) is None}
        self._kill_orphans()
        return True

    def _read_requests(self) -> bool:
        data = os.read(0, 65536)
        for line in self._requests.feed(data):
            message = json.loads(line)
            if "cancel" not in message:
                self._start(message)
            elif (job := self._running.get(message["cancel"])) is not None:
                self._fail(job, job_end.cancelled(job.name))
        return bool(data)

    def _start(self, message: dict[str, Any]) -> None:
        def become(messages: int) -> None:
            signal.set_wakeup_fd(-1)
            child.isolate(parent)
            self._close_in_child()
            child.limit_memory(message["memory_mib"])
            restore_threads()
            child.run_job(message["job"], message["request"], messages)

        parent = os.getpid()
        try:
            job = job_process.start(message, self._spawn, self._extra_jobs, become)
        except OSError as problem:
            failure = JobFailure(
                "crashed", f"no process for job {message['job']}: {problem.strerror}.", "End other programs first."
            )
            self.send({"failure": to_wire(failure), "id": message["id"]})
            return
        self._running[job.id] = job
        for fd in (job.messages, job.output):
            self._selector.register(fd, selectors.EVENT_READ, job)

    def _close_in_child(self) -> None:
        """What a job has no business with: the answers, and the pipes of other jobs."""
        others = [fd for job in self._running.values() for fd in (job.messages, job.output)]
        for fd in (self._answers, *self._wake, *others):
            os.close(fd)
        self._selector.close()

    def _read_job(self, job: JobProcess, fd: int) -> None:
        try:
            messages, is_open = job.read(fd)
        except BadMessage as problem:
            self._fail(job, job_end.no_message(job.name, str(problem)))
            return
        if not is_open:
            self._selector.unregister(fd)
        self._pass_on(job, messages)

    def _pass_on(self, job: JobProcess, messages: list[dict[str, Any]]) -> None:
        """Send messages on, up to the one that ends the job."""
        for message in messages:
            if "started" in message:
                message["pid"] = job.pid
            self.send({**message, "id": job.id})
            if "result" in message or "failure" in message:
                self._end(job)
                return

    def _watch(self, job: JobProcess) -> None:
        status = _wait_status(job.pid)
        if status is not None:
            self._read_last(job, status)
        elif time.monotonic() > job.deadline:
            self._fail(job, job_end.out_of_time(job.name, job.seconds))
        elif (held := memory_mib(job.pid)) > job.memory_mib:
            self._fail(job, job_end.out_of_memory(job.name, held, job.memory_mib))

    def _read_last(self, job: JobProcess, status: int) -> None:
        """The process is no more; it may have sent its result before that."""
        try:
            self._pass_on(job, job.drain())
        except BadMessage as problem:
            self._fail(job, job_end.no_message(job.name, str(problem)))
        if job.id in self._running:
            kills = job_end.out_of_memory_kills() - job.kills_before
            self._fail(job, job_end.died(job.name, status, bytes(job.printed), kills))

    def _fail(self, job: JobProcess, failure: JobFailure) -> None:
        self._end(job)
        self.send({"failure": to_wire(failure), "id": job.id})

    def _end(self, job: JobProcess) -> None:
        """Kill all of it and forget it; what is killed is reaped as it ends (a GPU lets go slowly)."""
        del self._running[job.id]
        kill_tree(job.pid)
        self._killed.add(job.pid)
        for fd in (job.messages, job.output):
            with contextlib.suppress(KeyError):
                self._selector.unregister(fd)
        job.close()

    def _end_all(self) -> None:
        """Return when nothing is left below this process."""
        for job in list(self._running.values()):
            self._end(job)
        while self._killed:
            for pid in self._killed:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)
            self._killed = set()
            self._kill_orphans()

    def _kill_orphans(self) -> None:
        """What was below a job's process when that died is this process's now."""
        known = {job.pid for job in self._running.values()} | self._killed
        for pid in children(os.getpid()) - known:
            kill_tree(pid)
            self._killed.add(pid)


def _wait_status(pid: int) -> int | None:
    """The wait status of a child that is no more, which reaps it; None while it lives."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return 0
    return status if ended else None


def main() -> None:
    """The command line; see the module's docstring."""
    parser = argparse.ArgumentParser(prog="python -m tigon_tools.parent")
    parser.add_argument("--spawn", action="store_true", help="start a fresh process for each job instead of forking")
    parser.add_argument("--interpret", action="store_true", help="Triton runs in its (repaired) interpreter")
    parser.add_argument("--jobs", help="a module that registers more jobs")
    options = parser.parse_args()
    answers = os.dup(1)
    os.dup2(2, 1)
    if stat.S_ISFIFO(os.fstat(2).st_mode):
        os.set_blocking(2, False)  # a server that reads no log must not stop the clock here
    if options.interpret:
        os.environ["TRITON_INTERPRET"] = "1"
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # A fork after torch is safe on Linux only: on macOS the system's own libraries have threads by then.
    spawn = options.spawn or sys.platform != "linux"
    parent = Parent(answers, spawn=spawn, extra_jobs=options.jobs)
    if options.jobs:
        importlib.import_module(options.jobs)
    refused = None if spawn else warm_up(options.interpret)
    if refused is not None:
        parent.send({"ready": False, "failure": to_wire(refused)})
        return
    parent.serve()
    os._exit(0)  # nothing is left to tidy up, and torch takes a second for it


if __name__ == "__main__":
    main()
