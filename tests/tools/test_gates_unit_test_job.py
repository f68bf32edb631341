"""Job `unit_tests` on real files: every outcome by test, and no way to a pass but passing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from parent_client import ParentClient, parent_client
from small_workspace import snapshot, write_workspace

from tigon_tools.schema.gates import UnitTestOutcome, UnitTestRequest, UnitTestResult

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="runs jobs through a forking parent")

TEST = "test/test_double.py"


@pytest.fixture(scope="module")
def parent() -> Iterator[ParentClient]:
    with parent_client("--interpret") as client:
        yield client


def outcomes(result: UnitTestResult) -> dict[str, str]:
    return {outcome.test.split("::")[-1]: outcome.outcome for outcome in result.outcomes}


def message(result: UnitTestResult, test: str) -> str:
    return _one(result, test).message


def _one(result: UnitTestResult, test: str) -> UnitTestOutcome:
    return next(outcome for outcome in result.outcomes if outcome.test.endswith(test))


def run(parent: ParentClient, root: Path, **options: object) -> UnitTestResult:
    result = parent.result("unit_tests", UnitTestRequest(str(root), (TEST,), **options))  # type: ignore[arg-type]
    assert isinstance(result, UnitTestResult)
    return result


EVERY_OUTCOME = """\
import pytest
import torch
from liger_kernel.ops import LigerDoubleFunction
from test.utils import three


@pytest.fixture
def broken():
    raise OSError("no such disk")


def test_kernel():
    x = torch.arange(10.0)
    assert torch.equal(LigerDoubleFunction.apply(x), x + x)

@pytest.mark.parametrize("n", [3, 4])
def test_number(n):
    assert three() == n, "the count"

def test_close():
    torch.testing.assert_close(torch.zeros(2, 3), torch.ones(2, 3))

@pytest.mark.skip(reason="needs two GPUs")
def test_skipped():
    raise AssertionError

def test_skips_itself():
    pytest.skip("bfloat16 not supported")

@pytest.mark.xfail(reason="known")
def test_known():
    raise AssertionError

@pytest.mark.xfail(strict=True)
def test_unknown():
    pass

def test_set_up(broken):
    pass

def test_tear_down(request):
    request.addfinalizer(lambda: 1 / 0)

async def test_coroutine():
    assert False
"""


def test_each_test_has_its_own_outcome(parent: ParentClient, tmp_path: Path) -> None:
    root = write_workspace(tmp_path, test__test_double=EVERY_OUTCOME)
    before = snapshot(root)
    result = run(parent, root)
    seen = outcomes(result)
    coroutine = seen.pop("test_coroutine")
    assert seen == {
        "test_kernel": "passed",
        "test_number[3]": "passed",
        "test_number[4]": "failed",
        "test_close": "failed",
        "test_skipped": "skipped",
        "test_skips_itself": "skipped",
        "test_known": "skipped",
        "test_unknown": "failed",
        "test_set_up": "error",
        "test_tear_down": "error",
    }
    assert coroutine != "passed", "a coroutine that nobody awaited shows nothing"
    assert not result.passed
    assert "2 passed" in result.detail
    assert message(result, "test_number[4]").startswith("AssertionError: the count assert 3 == 4")
    assert message(result, "test_number[4]").endswith(" (test/test_double.py:18)")
    assert "Mismatched elements: 6 / 6" in message(result, "test_close")
    assert message(result, "test_skipped") == "needs two GPUs"
    assert message(result, "test_skips_itself") == "bfloat16 not supported"
    assert message(result, "test_known") == "expected to fail: known"
    assert "no such disk" in message(result, "test_set_up")
    assert "ZeroDivisionError" in message(result, "test_tear_down")
    assert snapshot(root) == before, "the gate has left files in the workspace"


def test_progress_counts_the_tests(parent: ParentClient, tmp_path: Path) -> None:
    root = write_workspace(tmp_path, test__test_double="def test_a(): pass\ndef test_b(): pass\n")
    heard = len(parent.lines)
    assert run(parent, root).passed
    progress = [line["progress"] for line in parent.lines[heard:] if "progress" in line]
    assert progress == [["unit tests: 1 of 2", 0.5], ["unit tests: 2 of 2", 1.0]]


def test_a_keyword_chooses_tests(parent: ParentClient, tmp_path: Path) -> None:
    root = write_workspace(tmp_path, test__test_double="def test_a(): pass\ndef test_b(): assert False\n")
    result = run(parent, root, keyword="test_a")
    assert result.passed
    assert outcomes(result) == {"test_a": "passed"}


@pytest.mark.parametrize(
    ("text", "options", "detail"),
    [
        ("def test_a(): pass\n", {"keyword": "nothing"}, "no test that matches 'nothing' was collected"),
        ("def helper(): pass\n", {}, "no test was collected from test/test_double.py"),
        ("import pytest\n@pytest.mark.skip\ndef test_a(): pass\n", {}, "Every test was skipped, so nothing was shown"),
    ],
)
def test_nothing_shown_is_no_pass(
    parent: ParentClient, tmp_path: Path, text: str, options: dict[str, str], detail: str
) -> None:
    result = run(parent, write_workspace(tmp_path, test__test_double=text), **options)
    assert not result.passed
    assert detail in result.detail


def test_a_file_that_cannot_be_imported_is_an_error(parent: ParentClient, tmp_path: Path) -> None:
    result = run(parent, write_workspace(tmp_path, test__test_double="from liger_kernel.ops import LigerTriple\n"))
    assert outcomes(result) == {TEST: "error"}
    assert "cannot import name 'LigerTriple'" in message(result, TEST)
    assert not result.passed


ENDLESS = """\
def test_quick(): pass
def test_endless():
    while True:
        pass
def test_after(): pass
"""
DEAF = ENDLESS.replace(
    "def test_endless():", "def test_endless():\n    __import__('signal').pthread_sigmask(0, range(1, 32))"
)


@pytest.mark.parametrize("text", [ENDLESS, DEAF], ids=["endless", "deaf"])
def test_what_the_time_did_not_reach_is_cut_off(parent: ParentClient, tmp_path: Path, text: str) -> None:
    result = run(parent, write_workspace(tmp_path, test__test_double=text), max_seconds=6.0)
    assert outcomes(result) == {"test_quick": "passed", "test_endless": "cut off", "test_after": "cut off"}
    assert "still running" in message(result, "test_endless")
    assert "not reached within 6 s" in message(result, "test_after")
    assert not result.passed


CRASHES = """\
import ctypes, os
def test_before(): pass
def test_crash(): {crash}
def test_after(): pass
"""


@pytest.mark.parametrize(
    ("crash", "says"),
    [("ctypes.string_at(0)", "crashed with SIGSEGV"), ("os._exit(0)", "ended with exit code 0")],
    ids=["segfault", "exit"],
)
def test_a_crash_fails_the_test_it_happened_in(parent: ParentClient, tmp_path: Path, crash: str, says: str) -> None:
    result = run(parent, write_workspace(tmp_path, test__test_double=CRASHES.format(crash=crash)))
    assert outcomes(result) == {"test_before": "passed", "test_crash": "failed", "test_after": "cut off"}
    assert says in message(result, "test_crash")
    assert "test_crash" in message(result, "test_after")
    assert not result.passed


def test_a_crash_in_collection_is_a_failure_of_the_job(parent: ParentClient, tmp_path: Path) -> None:
    root = write_workspace(tmp_path, test__test_double="import os\nos._exit(4)\n")
    failure = parent.failure("unit_tests", UnitTestRequest(str(root), (TEST,)))
    assert failure.kind == "crashed"
    assert "exit code 4 while tests were collected" in failure.message


FAILS = "def test_a(): assert 1 == 2\ndef test_b(): pass\n"
FALSIFIERS = {
    "makereport": """\
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    report.outcome, report.longrepr = "passed", None
""",
    "outermost makereport": """\
import pytest
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    report = yield
    report.outcome, report.longrepr = "passed", None
    return report
""",
    "logreport": """\
import pytest
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report):
    report.outcome = "passed"
""",
    "own protocol": """\
def pytest_runtest_protocol(item, nextitem):
    return True
""",
    "left out": """\
def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if item.name != "test_a"]
""",
    "exit status": """\
def pytest_sessionfinish(session):
    session.exitstatus = 0
""",
    "early end": """\
import pytest
def pytest_runtest_setup(item):
    pytest.exit("all good", returncode=0)
""",
}


@pytest.mark.parametrize("conftest", FALSIFIERS)
def test_a_conftest_cannot_make_a_failure_a_pass(parent: ParentClient, tmp_path: Path, conftest: str) -> None:
    root = write_workspace(tmp_path, test__test_double=FAILS, test__conftest=FALSIFIERS[conftest])
    result = run(parent, root)
    assert outcomes(result)["test_a"] != "passed"
    assert not result.passed


def test_a_path_outside_the_workspace_is_refused(parent: ParentClient, tmp_path: Path) -> None:
    root = write_workspace(tmp_path / "workspace")
    (tmp_path / "test_outside.py").write_text("def test_a(): pass\n")
    for path in ("../test_outside.py", "test/test_gone.py"):
        failure = parent.failure("unit_tests", UnitTestRequest(str(root), (path,)))
        assert failure.kind == "bad_request"
        assert path in failure.message


def test_a_missing_pytest_is_said_with_the_command_that_installs_it(tmp_path: Path) -> None:
    root = write_workspace(tmp_path)
    request = f'{{"workspace": "{root}", "paths": ["{TEST}"]}}'
    code = (
        "import sys; sys.meta_path.insert(0, type('No', (), {'find_spec': staticmethod(lambda name, *_: "
        "(_ for _ in ()).throw(ModuleNotFoundError(name)) if name == 'pytest' else None)})); "
        "import importlib.util as u; real = u.find_spec; "
        "u.find_spec = lambda name, *a: None if name == 'pytest' else real(name, *a); "
        "from tigon_tools.__main__ import main; sys.exit(main(['unit_tests']))"
    )
    done = subprocess.run([sys.executable, "-c", code], input=request, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "no_pytest" in done.stdout
    assert "-m pip install pytest" in done.stdout
