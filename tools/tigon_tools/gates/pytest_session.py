"""One pytest session on a workspace, in a process of its own, reported as JSON lines while it runs.

Messages: `{"collected": [ids]}`, `{"left_out": [ids]}`, `{"started": id}`, `{"outcome": {…}}` with the
fields of `UnitTestOutcome`, `{"trouble": text}`, `{"finished": exit status}`, and `{"error": {…}}`, a
`JobFailure`, where the session could not begin.

Outcomes are taken where pytest makes its report of a test, and from the exception itself: code of the
workspace that rewrites a report cannot make a failure a pass. (It could still replace the test; that
is what the judge, which runs none of the workspace's tests, is for.)
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tigon_tools.gates.workspace_path import use_workspace
from tigon_tools.schema.errors import JobError
from tigon_tools.schema.gates import UnitTestOutcome, UnitTestRequest
from tigon_tools.schema.wire import to_wire

LONGEST_MESSAGE = 400
"""Characters of a test's message: what was raised, and torch's first lines on how far off it is."""

_LINES = 3
"""Lines of an exception that are kept; of `assert_close` these say how many elements differ."""


def run_session(request: UnitTestRequest, fd: int) -> None:
    """Run the tests and write the messages to `fd`."""
    try:
        root = use_workspace(request.workspace, request.device)
    except JobError as problem:
        _send(fd, {"error": to_wire(problem.failure)})
        return
    os.chdir(root)
    status = pytest.main(_arguments(request, root), plugins=[_Reporter(fd, root, request.keyword is not None)])
    _send(fd, {"finished": int(status)})


def _arguments(request: UnitTestRequest, root: Path) -> list[str]:
    arguments = [
        *request.paths,
        *("--rootdir", str(root), "--import-mode=prepend", "-q", "--no-header", "--tb=short", "--disable-warnings"),
        # The settings of the workspace are kept, but for those that print or leave files behind, and
        # those that need a plugin which may not be there.
        *("-o", "log_cli=false", "-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly"),
    ]
    return [*arguments, "-k", request.keyword] if request.keyword else arguments


def _send(fd: int, message: dict[str, Any]) -> None:
    data = memoryview(json.dumps(message).encode() + b"\n")
    while data:
        data = data[os.write(fd, data) :]


class _Reporter:
    """The pytest plugin that sends the messages."""

    def __init__(self, fd: int, root: Path, selects: bool) -> None:
        """selects: a keyword was asked for, so that tests are left out on purpose."""
        self._fd = fd
        self._root = root
        self._selects = selects
        self._current: dict[str, UnitTestOutcome] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, None, None]:
        before = [item.nodeid for item in items]
        yield
        collected = [item.nodeid for item in items]
        if not self._selects:
            _send(self._fd, {"left_out": sorted(set(before) - set(collected))})
        _send(self._fd, {"collected": collected})

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._send_outcome(UnitTestOutcome(report.nodeid, "error", 0.0, _lines(str(report.longrepr))))

    def pytest_internalerror(self, excrepr: object) -> None:
        _send(self._fd, {"trouble": str(excrepr).strip().splitlines()[-1][:LONGEST_MESSAGE]})

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        _send(self._fd, {"started": nodeid})

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        raised = call.excinfo  # before anybody else has seen it
        report = yield
        test = item.nodeid
        phase = self._phase(report, raised)
        if call.when == "setup":
            self._current[test] = UnitTestOutcome(test, "", 0.0)
        so_far = self._current[test]
        seconds = so_far.seconds + call.duration
        if phase is not None and so_far.outcome in ("", "passed"):
            so_far = replace(so_far, outcome=phase[0], message=phase[1])
        self._current[test] = replace(so_far, seconds=round(seconds, 4))
        if call.when == "teardown":
            self._send_outcome(self._current.pop(test))
        return report

    def _phase(self, report: pytest.TestReport, raised: pytest.ExceptionInfo[BaseException] | None) -> Any:
        """Outcome and message that one of set-up, call and tear-down decides; None where it decides nothing."""
        if report.failed:
            return ("failed" if report.when == "call" else "error"), self._message(report)
        if raised is None:
            return ("passed", "") if report.when == "call" and report.passed else _skip(report)
        if report.skipped:
            return _skip(report)
        return "failed", f"raised {raised.exconly(tryshort=True)[:200]}, and was reported as passed by the workspace."

    def _message(self, report: pytest.TestReport) -> str:
        crash = getattr(report.longrepr, "reprcrash", None)
        if crash is None:
            return _lines(str(report.longrepr))
        path = Path(os.path.abspath(crash.path))
        place = path.relative_to(self._root) if path.is_relative_to(self._root) else path.name
        return f"{_lines(crash.message)} ({place}:{crash.lineno})"

    def _send_outcome(self, outcome: UnitTestOutcome) -> None:
        _send(self._fd, {"outcome": to_wire(outcome)})


def _skip(report: pytest.TestReport) -> tuple[str, str] | None:
    if not report.skipped:
        return None
    if hasattr(report, "wasxfail"):
        return "skipped", f"expected to fail: {report.wasxfail}"[:LONGEST_MESSAGE].removesuffix(": ")
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return "skipped", reason.removeprefix("Skipped: ")[:LONGEST_MESSAGE]


def _lines(text: str) -> str:
    """The first lines that say something; of a printed traceback, those that pytest marks as the error."""
    lines = text.splitlines()
    errors = [line[1:] for line in lines if line.startswith("E ")]
    kept = [line.strip() for line in errors or lines if line.strip()][:_LINES]
    return " ".join(kept)[:LONGEST_MESSAGE]
