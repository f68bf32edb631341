"""Verify: start a run of the gates or join the one there is, and record how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from tigon.jobs.runner import JobFailed, JobRunner
from tigon.ledger.ledger import text_hash
from tigon.ledger.run_lock import Held, RunLock
from tigon.workflow import records
from tigon.workflow.answers import VerifyAnswer
from tigon.workflow.gates import Context, Gate
from tigon.workflow.integrity import files_hash, own_digests
from tigon.workflow.refusal import Refusal
from tigon.workflow.store import TaskStore
from tigon.workflow.tasks import Task
from tigon.workflow.unwritten import unwritten
from tigon.workflow.verify import CALL_BUDGET_SECONDS, VerifyRun, all_passed, chosen_gates
from tigon.workspace.layout import KernelPaths, Workspace
from tigon_tools.schema.gates import MachineRequest, MachineResult

Progress = Callable[[str, float], None]

DEVICES = ("auto", "cpu", "cuda")


class Verifier:
    """Runs by task; one at a time for each."""

    def __init__(self, workspace: Workspace, jobs: JobRunner, store: TaskStore) -> None:
        self._workspace = workspace
        self._jobs = jobs
        self._store = store
        self._runs: dict[str, VerifyRun] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    async def verify(
        self,
        task_id: str,
        device: str,
        names: Sequence[str] | None,
        progress: Progress,
        seconds: float = CALL_BUDGET_SECONDS,
    ) -> VerifyAnswer:
        """Run the gates, or pick a run up; answers within `seconds`.

        Raises:
            Refusal: nothing may be verified, or the run ended without a verdict.
        """
        wanted = _choose(names)
        if device not in DEVICES:
            raise Refusal("input", f"there is no device {device!r}.", f"use one of {', '.join(DEVICES)}.")
        if device == "cuda" and self._joinable(task_id) is None:
            _check_may_verify(self._store.task(task_id))
            await self._check_gpu()
        if self._joinable(task_id) is None:
            await self._end_of_last(task_id)
        run = self._joinable(task_id)
        joined = run is not None
        if run is None:
            run = self._start(task_id, device, wanted)
        try:
            done = await run.wait(progress, seconds)
        except BaseException:
            if run.abandoned or (run.task is not None and run.task.done()):
                self._forget(task_id, run)
            raise
        if done:
            self._forget(task_id, run)
        task = self._store.task(task_id)
        return VerifyAnswer(
            state=task.state if done else "verifying",
            next=self._next(task, run, done, joined and wanted != run.gates),
            task_id=task_id,
            passed=done and all_passed(run.results),
            gates=list(run.results),
            attempt=run.attempt,
            attempts_left=task.attempts_left,
            report_path=records.report_path(task_id),
            running=not done,
        )

    async def close(self) -> None:
        """Stop what runs."""
        runs = list(self._runs.values())
        self._runs.clear()
        for run in runs:
            run.abandon()
        await asyncio.gather(*(run.task for run in runs if run.task is not None), return_exceptions=True)

    async def _end_of_last(self, task_id: str) -> None:
        """A run that was cancelled holds the task until its job is killed, which takes a moment."""
        last = self._running.get(task_id)
        if last is not None:
            await asyncio.wait({last})

    async def _check_gpu(self) -> None:
        """No run is begun, so no attempt is lost, where there is nothing to run on."""
        try:
            machine: MachineResult = await self._jobs.run("machine", MachineRequest())
        except JobFailed as failed:
            raise Refusal("job", failed.failure.message, failed.failure.next_step or "call run_verify again.") from None
        if not machine.cuda:
            why = f" ({machine.problems[0]})" if machine.problems else ""
            raise Refusal(
                "device",
                f"this machine has no GPU that torch can use{why}, so nothing was run.",
                "leave `device` out for the CPU, or run Tigon where there is a GPU; `tigon doctor` says what is here.",
            )

    def _joinable(self, task_id: str) -> VerifyRun | None:
        """A run that goes on, or that ended while nobody waited and still is about the task's profile."""
        run = self._runs.get(task_id)
        if run is None or run.abandoned:
            return None
        if run.context.profile_hash != self._store.task(task_id).profile_hash:
            run.abandon()
            return None
        return run

    def _forget(self, task_id: str, run: VerifyRun) -> None:
        if self._runs.get(task_id) is run:
            del self._runs[task_id]

    def _next(self, task: Task, run: VerifyRun, done: bool, others: bool) -> str:
        again = f"call run_verify for {task.task_id} again"
        if not done:
            note = " (this run is of other gates than were asked for)" if others else ""
            return f"assistant: the gates are still running{note}; {again}."
        if others:
            names = ", ".join(gate.name for gate in run.gates)
            return f"assistant: this was the run under way, of {names}; {again} for the gates that you named."
        if all_passed(run.results) and not run.whole:
            return f"assistant: the chosen gates pass; {again} without `gates` to finish verification."
        if all_passed(run.results) and task.state != "awaiting_final_review":
            return f"assistant: everything passed, but files changed under the run; {again}."
        return task.next

    def _start(self, task_id: str, device: str, gates: tuple[Gate, ...]) -> VerifyRun:
        lock = self._lock(task_id)
        try:
            run = self._run(task_id, device, gates)  # reads the task now that nobody else moves it
            run.start()
        except BaseException:
            lock.release()
            raise
        assert run.task is not None
        self._runs[task_id] = run
        self._running[task_id] = run.task

        def over(_: asyncio.Task[None]) -> None:
            del self._running[task_id]
            lock.release()

        run.task.add_done_callback(over)
        return run

    def _lock(self, task_id: str) -> RunLock:
        _check_may_verify(self._store.task(task_id))
        try:
            return RunLock(self._workspace.root / ".tigon", task_id)
        except Held as holder:
            raise Refusal(
                "attempts",
                f"another server runs the gates of {task_id} now ({holder}), and two runs at once would count twice.",
                f"wait until task_status shows its result, then call run_verify for {task_id} if that is still wanted.",
            ) from None

    def _check_written(self, task: Task) -> None:
        """There is nothing to verify, and no attempt to lose, before the kernels are there.

        Raises:
            Refusal: with what each unwritten function has to compute.
        """
        path = KernelPaths.of(task.operation_name).ops
        left = unwritten(self._workspace.read(path)) if self._workspace.exists(path) else {}
        if left:
            sentences = " ".join(left.values())
            step = (
                f"assistant: write {', '.join(left)} in {path}, then call run_verify again; this call does not count."
            )
            raise Refusal("written", f"{len(left)} functions of {path} are not written. {sentences}", step)

    def _run(self, task_id: str, device: str, gates: tuple[Gate, ...]) -> VerifyRun:
        task = self._store.task(task_id)
        _check_may_verify(task)
        self._check_written(task)
        context = Context(
            workspace=self._workspace,
            jobs=self._jobs,
            profile=self._store.profile(task),
            profile_hash=task.profile_hash,
            reference=self._store.reference(task),
            approved=task.approved,
            snapshot=self._store.snapshot(task),
            originals=self._store.originals(task),
            scaffolded=task.scaffolded,
            of_other_tasks=self._store.files_of_others(task),
            others=self._store.names_of_others(task),
            scaffolded_test=self._store.scaffolded_test(task),
            generated_tests=bool(task.test_text),
            # "auto" is the interpreter, also beside a GPU: its gates are complete, and GPU runs are asked for.
            device="cuda" if device == "cuda" else "cpu",
        )
        before = files_hash(own_digests(self._workspace, context.names))
        return VerifyRun(
            gates, context, task.attempts + 1, task.decisions, lambda run: self._finish(run, task_id, before)
        )

    def _finish(self, run: VerifyRun, task_id: str, before: str) -> None:
        """Record the end of a run; files that changed under it are not what it verified."""
        task = self._store.task(task_id)
        digests = own_digests(self._workspace, run.context.names)
        after = files_hash(digests)
        passed = all_passed(run.results)
        report = records.render_report(task, run, passed, before == after)
        payload = {
            "profile_hash": run.context.profile_hash,
            "passed": passed,
            "whole": run.whole and before == after,
            "gates": [result.model_dump() for result in run.results],
            "device": run.context.device,
            "files": after,
            "digests": digests,
            "report": text_hash(report),
            "attempt": run.attempt,
            "decisions": run.decisions,
        }
        self._store.append(task, "verified", payload, [report])
        records.keep_copy(self._workspace.root, task_id, "report.md", report)


def _choose(names: Sequence[str] | None) -> tuple[Gate, ...]:
    try:
        return chosen_gates(names)
    except ValueError as problem:
        raise Refusal("input", str(problem), "name gates from this list, or leave `gates` out.") from None


def _check_may_verify(task: Task) -> None:
    if task.state == "blocked":
        raise Refusal("attempts", "three attempts have failed.", task.next)
    if task.state == "done":
        raise Refusal("task", f"task {task.task_id} is done.", task.next)
    if not task.approved:
        raise Refusal("profile_review", "nobody has approved this profile.", task.next)
    if not task.is_scaffolded:
        step = f"assistant: call scaffold_kernel for {task.task_id} first."
        raise Refusal("scaffold", "nothing has been scaffolded for this profile.", step)
