"""The candidate's process, from the judge's side: started, asked, and replaced when it dies."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

import torch

from tigon_tools.judge import candidate
from tigon_tools.judge.channel import receive, send

CASE_SECONDS = 60.0
"""For one case; the slowest on a CPU takes about two seconds."""

LOAD_SECONDS = 120.0
"""For importing the candidate: Liger imports transformers."""


END_SECONDS = 2.0
"""For a process to be gone after its end of the pipe is: a core dump takes a moment."""


class CandidateGone(Exception):
    """The process ended or hangs; the text says how."""


class CandidateProcess:
    """One process for many cases."""

    def __init__(self, name: str, workspace: str | None, device: str) -> None:
        self._name = name
        self._workspace = workspace
        self._device = device
        self._pid = 0
        self._connection: Connection | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and load the candidate there.

        Raises:
            CandidateGone: it cannot be loaded; says why.
        """
        ours, theirs = multiprocessing.Pipe()
        # Tracing may have touched CUDA in this process, and CUDA does not survive a fork.
        self._pid = self._fork(ours, theirs) if self._device == "cpu" else self._spawn(theirs)
        theirs.close()
        self._connection = ours
        header, _ = self._answer(LOAD_SECONDS)
        if "error" in header:
            self.stop()
            raise CandidateGone(str(header["error"]))

    def _fork(self, ours: Connection, theirs: Connection) -> int:
        pid = os.fork()
        if pid == 0:
            ours.close()
            try:
                candidate.serve(theirs, self._name, self._workspace, self._device)
            finally:
                os._exit(1)
        return pid

    def _spawn(self, theirs: Connection) -> int:
        descriptor = theirs.fileno()
        command = [
            sys.executable,
            "-m",
            candidate.__name__,
            str(descriptor),
            self._name,
            self._workspace or "",
            self._device,
        ]
        self._process = subprocess.Popen(command, pass_fds=(descriptor,), stdin=subprocess.DEVNULL)
        return self._process.pid

    def ask(
        self, header: Mapping[str, Any], tensors: list[torch.Tensor], seconds: float = CASE_SECONDS
    ) -> tuple[dict[str, Any], list[torch.Tensor]]:
        """Run one case; an answer later than `seconds` is none.

        Raises:
            CandidateGone: it crashed or did not answer in time; it is started anew by the next call.
        """
        if self._connection is None:
            self.start()
        assert self._connection is not None
        try:
            send(self._connection, header, tensors)
        except OSError:
            raise CandidateGone(self._ended()) from None
        return self._answer(seconds)

    def stop(self) -> None:
        """End the process."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            self._reap()

    def _answer(self, seconds: float) -> tuple[dict[str, Any], list[torch.Tensor]]:
        assert self._connection is not None
        if not self._connection.poll(seconds):
            self.stop()
            raise CandidateGone(f"no answer within {seconds:g} s")
        try:
            return receive(self._connection)
        except (EOFError, OSError):
            raise CandidateGone(self._ended()) from None
        except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as problem:
            self.stop()
            raise CandidateGone(f"it sent what is no answer ({type(problem).__name__})") from None

    def _ended(self) -> str:
        """How it ended; one that closed the pipe and lives on is killed."""
        pid, end = 0, time.monotonic() + END_SECONDS
        status = 0
        while pid == 0 and time.monotonic() < end:
            try:
                pid, status = os.waitpid(self._pid, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                time.sleep(0.01)
        if pid == 0:
            self.stop()
            return "it closed the pipe"
        self._pid = 0
        self._forget()
        self.stop()
        if os.WIFSIGNALED(status):
            return f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
        return f"exit code {os.WEXITSTATUS(status)}"

    def _reap(self) -> int:
        """The wait status; 0 where somebody else has waited."""
        status = 0
        with contextlib.suppress(ChildProcessError):
            _, status = os.waitpid(self._pid, 0)
        self._forget()
        self._pid = 0
        return status

    def _forget(self) -> None:
        if self._process is not None:
            self._process.returncode = 0  # reaped here; Popen must not wait for the pid again
            self._process = None
