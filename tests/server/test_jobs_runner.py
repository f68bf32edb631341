"""Jobs in real processes: each does what a kernel may do, and the caller is told, and nothing is left."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from job_session import AMPLE, HERE, JobSession, all_end, is_running, job_session, watch
from misbehaving_jobs import NAME, SECRET, Request

from tigon.jobs.limits import BY_JOB, DEFAULT, Limits
from tigon.jobs.runner import JobFailed, JobRunner
from tigon_tools.jobs import JOBS
from tigon_tools.schema.gates import MachineRequest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc and pidfds")

SHORT = Limits(seconds=1.0, memory_mib=4096)
SMALL = Limits(seconds=60, memory_mib=1024)
"""torch alone takes 300 MiB of it."""


@pytest.fixture(scope="module")
def forked() -> Iterator[JobSession]:
    with job_session() as session:
        yield session


@pytest.fixture(scope="module")
def spawned() -> Iterator[JobSession]:
    with job_session(spawn=True) as session:
        yield session


@pytest.fixture(params=["forked", "spawned"])
def session(request: pytest.FixtureRequest) -> JobSession:
    """Both ways of starting a process: what a caller sees must be the same."""
    chosen: JobSession = request.getfixturevalue(request.param)
    return chosen


DEATHS = {
    "segfault": ("crashed", r"SIGSEGV"),
    "leave": ("crashed", r"exit code 3 and no result"),
    "leave_silently": ("crashed", r"exit code 0 and no result"),
    "system_exit": ("crashed", r"sys\.exit\('bye'\) at misbehaving_jobs\.py:\d+"),
    "killed": ("crashed", r"killed from outside \(SIGKILL\)"),
    "unexpected": ("crashed", r"KeyError: 'surprise' at misbehaving_jobs\.py:\d+"),
    "unsendable": ("crashed", r"cannot be sent: set is not part of the schema"),
    "writes_everywhere": ("crashed", r"is not a message of a job"),
    "explained": ("bad_reference", r"line 3 is wrong\."),
}


@pytest.mark.parametrize("what", DEATHS)
def test_a_job_that_ends_without_a_result_says_how(forked: JobSession, what: str) -> None:
    kind, says = DEATHS[what]
    failure = forked.failure(what)
    assert failure.kind == kind
    assert re.search(says, failure.message), failure.message
    assert failure.next_step


def test_the_same_is_said_without_fork(spawned: JobSession) -> None:
    for what in ("segfault", "leave", "explained"):
        kind, says = DEATHS[what]
        failure = spawned.failure(what)
        assert failure.kind == kind
        assert re.search(says, failure.message), failure.message


def test_a_failure_that_a_job_explains_comes_whole(forked: JobSession) -> None:
    failure = forked.failure("explained")
    assert (failure.message, failure.next_step, failure.line) == ("line 3 is wrong.", "Correct it.", 3)


def test_last_words_are_quoted_without_secrets(forked: JobSession) -> None:
    failure = forked.failure("segfault_after_a_secret")
    assert "It last wrote: downloading with HF_TOKEN=" in failure.message
    assert SECRET not in failure.message


def test_a_crash_leaves_the_next_job_alone(forked: JobSession) -> None:
    parent = forked.text("parent")
    for what in ("segfault", "leave", "writes_everywhere"):
        forked.failure(what)
    assert forked.text("parent") == parent


@pytest.mark.parametrize("what", ["loop", "loop_in_handlers"])
def test_an_endless_loop_ends_at_the_time_limit(forked: JobSession, what: str) -> None:
    failure = forked.failure(what, limits=SHORT)
    assert failure.kind == "timeout"
    assert "time limit of 1 s" in failure.message


def test_the_time_limit_holds_without_fork(spawned: JobSession) -> None:
    assert spawned.failure("loop", limits=SHORT).kind == "timeout"


def test_memory_that_grows_below_the_job_is_stopped_at_the_limit(forked: JobSession) -> None:
    failure = forked.failure("grow", limits=SMALL)
    assert failure.kind == "memory"
    held = int(re.search(r"with (\d+) MiB", failure.message).group(1))  # type: ignore[union-attr]
    assert held < 4 * SMALL.memory_mib, "noticed long after the limit"


def test_one_allocation_that_is_too_large_fails_at_once(session: JobSession) -> None:
    failure = session.failure("grow_at_once", limits=SMALL)
    assert failure.kind == "memory"
    assert "ran out of memory" in failure.message


@pytest.mark.parametrize("what", ["prints", "floods"])
def test_what_a_job_prints_is_not_taken_for_a_message(forked: JobSession, what: str) -> None:
    assert forked.text(what) == "printed"
    assert forked.text("nothing") == ""


def test_a_job_has_no_file_of_its_parent_but_the_pipe_for_its_messages(forked: JobSession) -> None:
    kinds = json.loads(forked.text("open_files"))
    assert kinds.count("pipe") == 1
    assert "anon_inode" not in kinds and "socket" not in kinds


def test_a_parent_keeps_no_files_of_jobs_that_ended(forked: JobSession) -> None:
    before = forked.text("files_of_parent")
    for what in ("nothing", "segfault", "explained"):
        forked.answer(what) if what == "nothing" else forked.failure(what)
    assert forked.text("files_of_parent") == before


def test_secrets_of_the_server_are_not_in_a_jobs_environment() -> None:
    secrets = {"HF_TOKEN": "a", "OPENAI_API_KEY": "b", "TORCH_SECRET": "c", "PYTHON_PASSWORD": "d", "CUDA_AUTH": "e"}
    wanted = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "TRITON_CACHE_DIR": "/nowhere", "LC_ALL": "C.UTF-8", "CC": "gcc"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**secrets, **wanted, "SOMETHING_ELSE": "f"}.items():
            patch.setenv(name, value)
        with job_session(spawn=True) as session:
            seen = json.loads(session.text("environment"))
    assert not set(seen) & {*secrets, "SOMETHING_ELSE"}
    assert wanted.items() <= seen.items()
    assert seen["PATH"] == os.environ["PATH"]


def test_a_job_has_no_stdin_its_own_session_and_the_repaired_interpreter(session: JobSession) -> None:
    seen = json.loads(session.text("about_itself"))
    assert seen == {"stdin": "b''", "leads its session": True, "interprets": True}


def test_a_forked_job_computes_with_all_its_threads(forked: JobSession) -> None:
    import torch

    answer = json.loads(forked.text("computes"))
    assert answer == {"threads": torch.get_num_threads(), "finite": True}


def test_a_warm_parent_has_one_thread(forked: JobSession) -> None:
    assert forked.text("threads_of_parent") == "1"


def test_progress_comes_in_order(session: JobSession) -> None:
    heard: list[tuple[str, float]] = []
    assert session.text("reports", progress=lambda text, done: heard.append((text, done))) == "reported"
    assert heard == [("first", 0.25), ("second", 1.0)]


def test_a_long_answer_comes_whole(forked: JobSession) -> None:
    assert forked.text("long_answer") == "ü" * 3_000_000


def test_jobs_run_at_the_same_time(forked: JobSession, tmp_path: Path) -> None:
    async def three() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(meet)

    async def meet() -> None:
        answer = await forked.runner.run(NAME, Request("meets", str(tmp_path)), limits=AMPLE)
        assert answer.text == "met"

    forked.portal.call(three)


def test_what_a_job_started_dies_with_it(session: JobSession) -> None:
    pids = json.loads(session.text("leaves_processes"))
    assert len(pids) == 2
    assert all_end(watch(pids))


def test_what_a_crashed_job_started_dies_too(forked: JobSession, tmp_path: Path) -> None:
    fifo = _fifo(tmp_path)

    async def run() -> list[int]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(crash)
            pids: list[int] = json.loads(await anyio.to_thread.run_sync(fifo.read_text))
        return pids

    async def crash() -> None:
        with pytest.raises(JobFailed, match="exit code 3"):
            await forked.runner.run(NAME, Request("leaves_processes_and_crashes", str(fifo)), limits=AMPLE)

    pids = forked.portal.call(run)
    assert len(pids) == 2
    assert all_end(watch(pids))


def test_a_job_that_ends_does_not_take_another_ones_processes(forked: JobSession, tmp_path: Path) -> None:
    fifo = _fifo(tmp_path)

    async def run() -> list[int]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_run_and_expect_nothing, forked, Request("hangs", str(fifo)))
            pids: list[int] = json.loads(await anyio.to_thread.run_sync(fifo.read_text))
            await forked.runner.run(NAME, Request("leaves_processes"), limits=AMPLE)
            await forked.runner.run(NAME, Request("nothing"), limits=AMPLE)
            alive = [pid for pid in pids if is_running(pid)]
            tasks.cancel_scope.cancel()
        return [pid for pid in pids if pid not in alive]

    assert forked.portal.call(run) == [], "an orphan of one job was killed with another"


def test_cancelling_the_caller_kills_the_job_and_all_below_it(session: JobSession, tmp_path: Path) -> None:
    fifo = _fifo(tmp_path)

    async def run_and_cancel() -> list[int]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_run_and_expect_nothing, session, Request("hangs", str(fifo)))
            pids = json.loads(await anyio.to_thread.run_sync(fifo.read_text))
            watched = watch(pids)
            tasks.cancel_scope.cancel()
        return watched

    watched = session.portal.call(run_and_cancel)
    assert len(watched) == 3
    assert all_end(watched), "something of the job outlived its caller"
    assert session.text("nothing") == ""


def test_close_ends_the_parent_and_its_jobs(tmp_path: Path) -> None:
    fifo = _fifo(tmp_path)
    with job_session(spawn=True) as session:
        parent = int(session.text("parent"))

        async def run_and_close() -> tuple[list[int], JobFailed]:
            failures: list[JobFailed] = []

            async def run() -> None:
                try:
                    await session.runner.run(NAME, Request("hangs", str(fifo)), limits=AMPLE)
                except JobFailed as failed:
                    failures.append(failed)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run)
                pids = json.loads(await anyio.to_thread.run_sync(fifo.read_text))
                watched = watch([parent, *pids])
                await session.runner.close()
            return watched, failures[0]

        watched, failed = session.portal.call(run_and_close)
    assert all_end(watched)
    assert failed.failure.kind == "crashed"


def test_a_parent_that_dies_fails_its_jobs_and_is_started_anew(tmp_path: Path) -> None:
    fifo = _fifo(tmp_path)
    with job_session() as session:
        parent = int(session.text("parent"))

        async def run_and_kill() -> list[int]:
            watched: list[int] = []

            async def kill() -> None:
                pids = json.loads(await anyio.to_thread.run_sync(fifo.read_text))
                watched.extend(watch(pids[:2]))  # the third has left the group: nobody is left to know of it
                os.kill(pids[2], signal.SIGKILL)
                os.kill(parent, signal.SIGKILL)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(kill)
                with pytest.raises(JobFailed, match="the process that runs jobs died"):
                    await session.runner.run(NAME, Request("hangs", str(fifo)), limits=AMPLE)
            return watched

        assert all_end(session.portal.call(run_and_kill))
        assert session.text("nothing") == ""
        assert int(session.text("parent")) != parent


SERVER = """\
import asyncio, sys
from misbehaving_jobs import NAME, Request
from tigon.jobs.runner import JobRunner

asyncio.run(JobRunner(sys.executable, extra_jobs="misbehaving_jobs").run(NAME, Request("hangs", sys.argv[1])))
"""


def test_kill_9_of_the_server_leaves_nothing_alive(tmp_path: Path) -> None:
    fifo = _fifo(tmp_path)

    async def run() -> list[int]:
        path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, "-c", SERVER, str(fifo)]
        async with await anyio.open_process(command, env={**os.environ, "PYTHONPATH": path}, stderr=None) as server:
            pids = json.loads(await anyio.to_thread.run_sync(fifo.read_text))
            parent = int(Path(f"/proc/{pids[0]}/stat").read_text().rpartition(")")[2].split()[1])
            watched = watch([parent, *pids])
            server.kill()
        return watched

    watched = anyio.run(run)
    assert len(watched) == 4
    assert all_end(watched), "something outlived the server"


def test_an_interpreter_without_torch_is_told_how_to_get_it(tmp_path: Path) -> None:
    """It has not installed `tigon_tools` either: what it says shows that it found it."""
    venv.create(tmp_path / "bare", symlinks=True)
    python = str(tmp_path / "bare" / "bin" / "python")
    failure = _failure_of(python)
    assert failure.kind == "no_torch"
    assert "cannot import torch" in failure.message
    assert f"{python} -m pip install" in failure.next_step


def test_an_interpreter_that_is_not_there_is_named(tmp_path: Path) -> None:
    python = str(tmp_path / "python")
    failure = _failure_of(python)
    assert failure.kind == "no_torch"
    assert python in failure.message
    assert "TIGON_PYTHON" in failure.next_step


def test_an_interpreter_that_fails_to_start_is_quoted(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'libpython is gone' >&2\nexit 127\n")
    python.chmod(0o755)
    failure = _failure_of(str(python))
    assert failure.kind == "no_torch"
    assert "exit code 127" in failure.message and "libpython is gone" in failure.message


def test_a_file_in_the_working_folder_does_not_shadow_the_standard_library(tmp_path: Path) -> None:
    for name in ("json.py", "selectors.py", "torch.py", "tigon_tools.py"):
        (tmp_path / name).write_text("raise SystemExit('shadowed')\n")
    with job_session(spawn=True, cwd=tmp_path) as session:
        assert session.text("working_folder") == str(tmp_path)


def test_a_job_starts_sooner_forked_than_spawned(forked: JobSession, spawned: JobSession) -> None:
    """The target is 150 ms (`benchmarks/job_start.py` measures it); here both run on the same busy machine."""
    fork = min(_start_seconds(forked) for _ in range(5))
    spawn = min(_start_seconds(spawned) for _ in range(2))
    assert fork < spawn / 5, f"forked {fork:.3f} s, spawned {spawn:.3f} s"


def _start_seconds(session: JobSession) -> float:
    import time

    called = time.monotonic()
    return session.answer("nothing").started - called


def test_every_limit_is_for_a_job_that_exists() -> None:
    assert set(BY_JOB) <= set(JOBS)
    assert DEFAULT.memory_mib >= 1024


def _fifo(folder: Path) -> Path:
    fifo = folder / "pids"
    os.mkfifo(fifo)
    return fifo


async def _run_and_expect_nothing(session: JobSession, request: Request) -> None:
    await session.runner.run(NAME, request, limits=AMPLE)


def _failure_of(python: str):  # type: ignore[no-untyped-def]
    async def run() -> None:
        runner = JobRunner(python)
        try:
            await runner.run("machine", MachineRequest())
        finally:
            await runner.close()

    with pytest.raises(JobFailed) as caught:
        anyio.run(run)
    return caught.value.failure
