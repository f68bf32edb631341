"""Job `unit_tests`: pytest on files of the workspace, results by test.

The session runs in a process of its own, so that a test which crashes or never ends costs its own
outcome and not those before it. A test that the time did not reach is "cut off", which is not a pass.
"""

from __future__ import annotations

import importlib.util
import json
import os
import select
import signal
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tigon_tools.gates.workspace_path import workspace_root
from tigon_tools.jobs import Progress
from tigon_tools.message_lines import LineBuffer
from tigon_tools.process_tree import kill_tree
from tigon_tools.schema.errors import JobError, JobFailure
from tigon_tools.schema.gates import UnitTestOutcome, UnitTestRequest, UnitTestResult
from tigon_tools.schema.wire import from_wire

_LOOK_SECONDS = 0.5
"""Between looks at whether the session's process still lives; its messages are read as they come."""

_STATUS = {2: "it was interrupted", 3: "it failed within itself", 4: "it refused the test's name or an option"}
"""pytest's exit statuses (`pytest.ExitCode`) that say more than the outcomes do."""


@dataclass
class _Session:
    """What has been heard from the session's process.

    stopped: why tests that have no outcome have none.
    """

    collected: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    outcomes: dict[str, UnitTestOutcome] = field(default_factory=dict)
    running: str | None = None
    trouble: str = ""
    finished: int | None = None
    stopped: str = "not reached: pytest stopped early."

    def hear(self, message: dict[str, Any]) -> None:
        """Raises:
        JobError: the session could not begin.
        """
        match message:
            case {"collected": ids}:
                self.collected = ids
            case {"left_out": ids}:
                self.left_out = ids
            case {"started": test}:
                self.running = test
            case {"outcome": outcome}:
                heard = from_wire(UnitTestOutcome, outcome)
                self.outcomes[heard.test] = heard
                self.running = None
            case {"trouble": text}:
                self.trouble = text
            case {"finished": status}:
                self.finished = status
            case {"error": failure}:
                said = from_wire(JobFailure, failure)
                raise JobError(said.kind, said.message, said.next_step, said.line)


def run(request: UnitTestRequest, progress: Progress | None = None) -> UnitTestResult:
    """Run the tests.

    Raises:
        JobError: "bad_request" for a path that is not in the workspace; "no_pytest"; "crashed" where the
            process ends while tests are collected; see also `use_workspace`.
    """
    if importlib.util.find_spec("pytest") is None:
        raise JobError(
            "no_pytest",
            f"{sys.executable} has no pytest.",
            f"Install it there: {sys.executable} -m pip install pytest.",
        )
    root = workspace_root(request.workspace)
    for path in request.paths:
        _check_path(root, path)
    start = time.monotonic()
    session = _Session()
    pid, messages = _start_session(request)
    try:
        in_time = _listen(session, pid, messages, start + request.max_seconds, progress)
    finally:
        if session.finished is None:
            kill_tree(pid)  # no effect on one that has ended: it is not reaped yet
        os.close(messages)
        _, status = os.waitpid(pid, 0)
    if not in_time:
        _stop_clock(session, request.max_seconds)
    elif session.finished is None:
        _blame(session, os.waitstatus_to_exitcode(status))
    return _result(request, session, time.monotonic() - start)


def _check_path(root: Path, path: str) -> None:
    file = (root / path.split("::")[0]).resolve()
    if not file.is_relative_to(root) or not file.exists():
        raise JobError("bad_request", f"{path} is not in the workspace {root}.", "Scaffold it, or correct the path.")


def _start_session(request: UnitTestRequest) -> tuple[int, int]:
    """The pid of a forked process that runs pytest, and the pipe of its messages."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become_session(request, writing)
    os.close(writing)
    return pid, reading


def _become_session(request: UnitTestRequest, writing: int) -> None:
    """In the child; never returns."""
    try:
        from tigon_tools.gates.pytest_session import run_session

        run_session(request, writing)
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _listen(session: _Session, pid: int, messages: int, deadline: float, progress: Progress | None) -> bool:
    """Hear the session out; False where the time ran out first."""
    lines = LineBuffer()
    ended = False
    while session.finished is None:
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        ready, _, _ = select.select([messages], [], [], min(left, _LOOK_SECONDS))
        if not ready:
            # A process below it may keep the pipe open: its end is then not the end of the session.
            if ended:
                return True
            ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
            continue
        data = os.read(messages, 65536)
        if not data:
            return True
        for line in lines.feed(data):
            message = json.loads(line)
            session.hear(message)
            if progress is not None and "outcome" in message and session.collected:
                done = sum(test in session.outcomes for test in session.collected)
                progress(f"unit tests: {done} of {len(session.collected)}", done / len(session.collected))
    return True


def _stop_clock(session: _Session, seconds: float) -> None:
    session.stopped = f"not reached within {seconds:g} s."
    if session.running is not None:
        message = f"still running when the {seconds:g} s were over."
        session.outcomes[session.running] = UnitTestOutcome(session.running, "cut off", 0.0, message)


def _blame(session: _Session, code: int) -> None:
    """The process ended by itself: the test it was in has failed.

    Raises:
        JobError: "crashed" where it was in none.
    """
    how = f"crashed with {_signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
    if session.running is None:
        where = "between tests" if session.collected else "while tests were collected"
        raise JobError(
            "crashed",
            f"the process of the unit tests {how} {where}.",
            "Look for a crash, or a call of exit(), in what the test file and its conftest import.",
        )
    message = f"the process {how} in this test; look at masks and offsets."
    session.outcomes[session.running] = UnitTestOutcome(session.running, "failed", 0.0, message)
    session.stopped = f"not reached: the process {how} in {session.running}."


def _signal_name(number: int) -> str:
    return signal.Signals(number).name if number in list(signal.Signals) else f"signal {number}"


def _result(request: UnitTestRequest, session: _Session, seconds: float) -> UnitTestResult:
    outcomes = [
        *session.outcomes.values(),
        *(UnitTestOutcome(test, "cut off", 0.0, "left out by the workspace's conftest.") for test in session.left_out),
        *(
            UnitTestOutcome(test, "cut off", 0.0, session.stopped)
            for test in session.collected
            if test not in session.outcomes
        ),
    ]
    count = Counter(outcome.outcome for outcome in outcomes)
    passed = count["passed"] > 0 and not (count["failed"] or count["error"] or count["cut off"])
    return UnitTestResult(
        passed and session.finished == 0, tuple(outcomes), round(seconds, 2), _detail(request, session, count)
    )


def _detail(request: UnitTestRequest, session: _Session, count: Counter[str]) -> str:
    """The result in a sentence."""
    sentences = []
    if not count:
        chosen = f" that matches {request.keyword!r}" if request.keyword else ""
        late = session.finished is None
        why = f": {session.stopped}" if late else "."
        sentences.append(f"no test{chosen} was collected from {', '.join(request.paths)}{why}")
    else:
        named = [f"{count[name]} {name}" for name in ("passed", "failed", "error", "skipped", "cut off") if count[name]]
        sentences.append(f"{', '.join(named)}.")
        if set(count) == {"skipped"}:
            sentences.append("Every test was skipped, so nothing was shown.")
    if session.finished in _STATUS:
        why = f": {session.trouble}" if session.trouble else ""
        sentences.append(f"pytest did not run to its end: {_STATUS[session.finished]}{why}.")
    return " ".join(sentences)
