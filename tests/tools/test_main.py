"""`python -m tigon_tools JOB`: JSON in, JSON out, and an exit status that says which kind of answer it is."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tigon_tools.schema.gates import MachineResult
from tigon_tools.schema.reference import ResolveResult
from tigon_tools.schema.wire import from_wire


def run(*arguments: str, request: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tigon_tools", *arguments]
    return subprocess.run(command, input=request, capture_output=True, text=True, check=False)


def test_without_a_job_it_lists_the_jobs() -> None:
    done = run()
    assert done.returncode == 0
    for name in ("resolve", "trace", "generate", "judge", "import", "unit_tests", "machine"):
        assert f"\n  {name} " in done.stdout


def test_a_result_is_all_that_is_on_stdout() -> None:
    done = run("machine", request="{}")
    assert done.returncode == 0, done.stderr
    assert from_wire(MachineResult, json.loads(done.stdout)).executable == sys.executable


def test_what_a_job_prints_goes_to_stderr(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("prints")
    (folder / "prints.py").write_text("import os\nprint('hello')\nos.write(1, b'world')\ndef f(x):\n    return x\n")
    done = run("resolve", request=json.dumps({"source": "prints:f", "root": str(folder)}))
    assert done.returncode == 0, done.stderr
    assert from_wire(ResolveResult, json.loads(done.stdout)).reference.entry == "f"
    assert "hello" in done.stderr and "world" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "request_text", "says"),
    [
        (["brew"], "{}", "there is no job 'brew'"),
        (["machine", "machine"], "{}", "one job at a time"),
        (["machine"], "{", "not JSON"),
        (["machine"], "[]", "expected an object"),
        (["resolve"], '{"source": "x"}', "field 'root' is missing"),
        (["import"], '{"workspace": 3, "names": []}', "ImportRequest.workspace: expected str"),
    ],
)
def test_a_bad_request_exits_2_and_says_why(arguments: list[str], request_text: str, says: str) -> None:
    done = run(*arguments, request=request_text)
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert set(error) == {"kind", "message", "next_step", "line"}
    assert error["kind"] == "bad_request"
    assert says in error["message"]
    assert error["next_step"]
    assert "Traceback" not in done.stderr


def test_a_failure_that_the_job_explains_exits_1() -> None:
    done = run("resolve", request=json.dumps({"source": "import numpy\ndef f(x):\n    return x\n", "root": "."}))
    assert done.returncode == 1
    error = json.loads(done.stdout)["error"]
    assert error["kind"] == "bad_reference"
    assert error["line"] == 1
