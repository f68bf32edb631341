"""The workflow's face: one method for each tool. What is allowed is decided in the modules it calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tigon.jobs.runner import JobRunner
from tigon.ledger.ledger import Ledger
from tigon.ledger.migrations import LedgerTooNew
from tigon.workflow import acting, records, reviewing, understanding
from tigon.workflow.answers import (
    Decision,
    FinishAnswer,
    ProfileAnswer,
    ReferenceAnswer,
    ReferenceFile,
    ReviewAnswer,
    ScaffoldAnswer,
    StatusAnswer,
    TaskSummary,
    TierAnswer,
    VerifyAnswer,
)
from tigon.workflow.questions import ReviewQuestion
from tigon.workflow.refusal import Refusal
from tigon.workflow.standing import standing
from tigon.workflow.store import TaskStore
from tigon.workflow.tasks import Task
from tigon.workflow.verifying import Verifier
from tigon.workspace.layout import Workspace
from tigon.workspace.reference_code import UnknownKernel, find

Progress = Callable[[str, float], None]


class KernelWorkflow:
    """Every tool call on one workspace. Not for several event loops; several processes are fine."""

    def __init__(self, root: Path, jobs: JobRunner | None = None) -> None:
        """root: of a Liger checkout.

        Raises:
            NotAWorkspace: it is none.
            Refusal: a newer Tigon has worked here.
        """
        self.workspace = Workspace.open(root)
        self.jobs = jobs or JobRunner(cwd=self.workspace.root)
        try:
            self.store = TaskStore(Ledger(self.workspace.root / ".tigon"))
        except LedgerTooNew as problem:
            raise Refusal("ledger", str(problem), "tell the human to upgrade Tigon.") from None
        self._verifier = Verifier(self.workspace, self.jobs, self.store)

    async def close(self) -> None:
        """Stop runs and jobs."""
        await self._verifier.close()
        await self.jobs.close()
        self.store.close()

    async def classify_tier(
        self, source: str, entry: str | None, inputs: Sequence[dict[str, Any]] | None, progress: Progress
    ) -> TierAnswer:
        return await understanding.classify(self.workspace, self.jobs, source, entry, inputs, progress)

    def get_reference(self, kernel: str | None, tier: int | None, part: str | None) -> ReferenceAnswer:
        try:
            parts = find(self.workspace, kernel, tier, part)
        except UnknownKernel as problem:
            raise Refusal("input", str(problem), "liger://index lists the kernels by tier.") from None
        return ReferenceAnswer(
            state="ready",
            next="assistant: read it for its form; the reference decides what is right.",
            files=[ReferenceFile(path=p.path, lines=p.lines, text=p.text) for p in parts],
            liger_version=self.workspace.liger_version,
        )

    async def emit_profile(
        self, workflow: str, profile: dict[str, Any], task_id: str | None, progress: Progress
    ) -> ProfileAnswer:
        return await understanding.emit(self.workspace, self.jobs, self.store, workflow, profile, task_id, progress)

    def pending_review(self, task_id: str) -> ReviewQuestion:
        return reviewing.pending(self.workspace, self.store, task_id)

    def record_decision(
        self, task_id: str, shown: str, decision: Decision, channel: str, comment: str = ""
    ) -> ReviewAnswer:
        """An answer to the question whose hash is `shown`."""
        return reviewing.record(self.workspace, self.store, task_id, shown, decision, channel, comment)[1]

    async def scaffold_kernel(self, task_id: str, progress: Progress) -> ScaffoldAnswer:
        return await acting.scaffold(self.workspace, self.jobs, self.store, task_id, progress)

    async def run_verify(
        self, task_id: str, device: str, gates: Sequence[str] | None, progress: Progress
    ) -> VerifyAnswer:
        return await self._verifier.verify(task_id, device, gates, progress)

    def finish(self, task_id: str, shown: str, decision: Decision, channel: str, comment: str = "") -> FinishAnswer:
        """The final review's answer.

        Raises:
            Refusal: verification has not passed, or not on the files as they are.
        """
        self.check_final(task_id)
        _, answer = reviewing.record(self.workspace, self.store, task_id, shown, decision, channel, comment)
        return FinishAnswer(
            state=answer.state,
            next=answer.next,
            task_id=task_id,
            decision=answer.decision,
            channel=channel,
            comment=comment,
            report_path=records.report_path(task_id),
        )

    def check_final(self, task_id: str) -> None:
        """Whether the final review is due.

        Raises:
            Refusal: it is not; says what comes first.
        """
        task = self.store.task(task_id)
        if task.state == "done":
            raise Refusal("final_review", f"task {task_id} is done already.", task.next)
        if task.state != "awaiting_final_review":
            raise Refusal(
                "final_review", f"task {task_id} is {task.state}, and its gates have not all passed.", task.next
            )

    def task_status(self, task_id: str | None) -> StatusAnswer:
        if task_id is None:
            tasks = self.store.tasks()
            step = "assistant: name a task_id for more." if tasks else "assistant: open a task with emit_profile."
            return StatusAnswer(state="ready", next=step, tasks=[self._summary(task) for task in tasks])
        task = self.store.task(task_id)
        summary = self._summary(task)
        details = {**summary.model_dump(), **_details(task)}
        return StatusAnswer(state=summary.state, next=summary.next, task_id=task_id, task=details)

    def _summary(self, task: Task) -> TaskSummary:
        state, step = standing(self.workspace, self.store, task)
        return TaskSummary(
            task_id=task.task_id,
            workflow=task.workflow,
            operation_name=task.operation_name,
            state=state,
            next=step,
            updated=task.updated,
        )

    def report_text(self, task_id: str) -> str:
        """The last report.

        Raises:
            Refusal: there is none yet.
        """
        task = self.store.task(task_id)
        if not task.report_text:
            raise Refusal("report", f"task {task_id} has no report yet.", task.next)
        text = self.store.ledger.text(task.report_text)
        records.keep_copy(self.workspace.root, task_id, "report.md", text)
        return text

    def profile_text(self, task_id: str) -> str:
        """The profile as the human reads it, from the ledger; the copy on disk is written again."""
        return understanding.write_profile(self.workspace, self.store, self.store.task(task_id))


def _details(task: Task) -> dict[str, Any]:
    return {
        "profile_hash": task.profile_hash,
        "profile_path": records.profile_path(task.task_id),
        "approved": task.approved,
        "problems": list(task.problems),
        "files": sorted(task.scaffolded),
        "gates": task.last_gates,
        "attempts": task.attempts,
        "attempts_left": task.attempts_left,
        "report_path": records.report_path(task.task_id) if task.report_text else None,
        "reviews": task.reviews,
        "comment": task.comment,
    }
