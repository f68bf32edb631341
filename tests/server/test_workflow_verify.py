"""One run of the gates: order, early stop, joining, leaving, cancelling. The gates here are small coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from facts_by_hand import REFERENCE, small_workspace

from tigon.jobs.runner import JobFailed
from tigon.workflow.answers import GateResult, GateStatus
from tigon.workflow.gates import GATES, Context, Gate
from tigon.workflow.kernel_profile import read_profile
from tigon.workflow.refusal import Refusal
from tigon.workflow.verify import VerifyRun, all_passed, chosen_gates
from tigon_tools.schema.errors import JobFailure

LONG = 30.0
"""Seconds that no test here waits: its gates end when the test says so."""

Check = Callable[[Context], Awaitable[tuple[GateStatus, str]]]


class NoTorch:
    """Stands where the jobs would be: gates that need none still run."""

    async def run(self, *_: object, **__: object) -> None:
        raise JobFailed(JobFailure("no_torch", "there is no torch."))


def gives(status: GateStatus) -> Check:
    async def check(context: Context) -> tuple[GateStatus, str]:
        return status, f"it is {status}"

    return check


def run_of(tmp_path: Path, *gates: Gate) -> tuple[VerifyRun, list[VerifyRun]]:
    finished: list[VerifyRun] = []
    context = Context(
        workspace=small_workspace(tmp_path),
        jobs=NoTorch(),  # type: ignore[arg-type]
        profile=read_profile({"operation_name": "mish", "reference": "x"}),
        profile_hash="A",
        reference=REFERENCE,
        approved=True,
        snapshot={},
        originals={},
        scaffolded={},
        of_other_tasks={},
        others={},
        scaffolded_test=None,
        device="cpu",
    )
    return VerifyRun(tuple(gates), context, 1, 0, finished.append), finished


def silent(text: str, fraction: float) -> None:
    """Nobody listens."""


def test_a_gate_whose_ground_failed_is_skipped_and_others_still_run(tmp_path: Path) -> None:
    async def body() -> None:
        run, finished = run_of(
            tmp_path,
            Gate("import", "hard", gives("failed")),
            Gate("style", "hard", gives("passed")),
            Gate("judge", "hard", gives("passed"), needs=("import",)),
        )
        run.start()
        assert await run.wait(silent, LONG)
        assert [(r.name, r.status) for r in run.results] == [
            ("import", "failed"),
            ("style", "passed"),
            ("judge", "skipped"),
        ]
        assert finished == [run]
        assert not all_passed(run.results)

    asyncio.run(body())


def test_a_call_that_leaves_finds_the_run_again(tmp_path: Path) -> None:
    async def body() -> None:
        go_on = asyncio.Event()
        starts = 0

        async def slow(context: Context) -> tuple[GateStatus, str]:
            nonlocal starts
            starts += 1
            await go_on.wait()
            return "passed", ""

        run, finished = run_of(tmp_path, Gate("style", "hard", gives("passed")), Gate("judge", "hard", slow))
        run.start()
        assert not await run.wait(silent, 0.05)
        assert [r.name for r in run.results] == ["style"]
        go_on.set()
        assert await run.wait(silent, LONG)
        assert (starts, len(finished)) == (1, 1)

    asyncio.run(body())


def test_the_run_ends_with_its_last_waiter_and_not_before(tmp_path: Path) -> None:
    async def body() -> None:
        cancelled = asyncio.Event()

        async def endless(context: Context) -> tuple[GateStatus, str]:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
            return "passed", ""

        run, finished = run_of(tmp_path, Gate("judge", "hard", endless))
        run.start()
        waiters = [asyncio.create_task(run.wait(silent, LONG)) for _ in range(2)]
        await asyncio.sleep(0)
        waiters[0].cancel()
        await asyncio.wait({waiters[0]})
        assert run.task is not None and not run.abandoned and not run.task.done()
        waiters[1].cancel()
        await asyncio.wait({waiters[1]})
        await asyncio.wait({run.task}, timeout=LONG)
        assert cancelled.is_set() and run.abandoned and finished == []
        with pytest.raises(Refusal, match="was cancelled"):
            await run.wait(silent, LONG)

    asyncio.run(body())


def test_a_machine_without_torch_is_no_failed_attempt(tmp_path: Path) -> None:
    async def body() -> None:
        async def needs_torch(context: Context) -> tuple[GateStatus, str]:
            await context.jobs.run("judge", None)
            return "passed", ""

        run, finished = run_of(tmp_path, Gate("judge", "hard", needs_torch))
        run.start()
        with pytest.raises(Refusal, match="there is no torch"):
            await run.wait(silent, LONG)
        assert finished == []

    asyncio.run(body())


def test_progress_never_goes_back(tmp_path: Path) -> None:
    async def body() -> None:
        async def talks(context: Context) -> tuple[GateStatus, str]:
            for fraction in (0.0, 0.5, 1.0):
                context.progress("at it", fraction)
            return "passed", ""

        seen: list[float] = []
        run, _ = run_of(tmp_path, *(Gate(name, "hard", talks) for name in ("import", "style", "judge")))
        run.start()
        await run.wait(lambda text, fraction: seen.append(fraction), LONG)
        assert seen == sorted(seen)
        assert seen[-1] == 1.0

    asyncio.run(body())


def test_gates_are_chosen_by_name_in_their_own_order() -> None:
    assert chosen_gates(None) == GATES
    with pytest.raises(ValueError, match="`gates` is empty, so nothing would be checked"):
        chosen_gates([])
    assert [gate.name for gate in chosen_gates(["judge", "style"])] == ["style", "judge"]
    with pytest.raises(ValueError, match="no gate 'speed'; there are integrity, scaffold_tests, import, style"):
        chosen_gates(["style", "speed"])


@pytest.mark.parametrize(
    ("kind", "status", "passed"),
    [
        ("hard", "passed", True),
        ("hard", "flagged", True),
        ("hard", "failed", False),
        ("hard", "skipped", False),
        ("soft", "failed", True),
    ],
)
def test_only_hard_gates_decide(kind: str, status: str, passed: bool) -> None:
    result = GateResult.model_validate({"name": "x", "kind": kind, "status": status, "detail": ""})
    assert all_passed([result]) is passed
