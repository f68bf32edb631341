"""What each tool answers: the structured content that a model reads.

Every answer has `state` and `next`; names are those of the contract and may only be added to.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

TaskState = Literal[
    "understanding",
    "awaiting_profile_review",
    "acting",
    "verifying",
    "awaiting_final_review",
    "done",
    "blocked",
    "rejected",
]
Decision = Literal["approved", "rejected", "pending"]
GateKind = Literal["hard", "soft"]
GateStatus = Literal["passed", "failed", "flagged", "skipped"]


class Answer(BaseModel):
    """state: the task's, or "ready" where there is no task. next: what to do, and who does it."""

    model_config = ConfigDict(extra="forbid")

    state: str
    next: str


class TaskAnswer(Answer):
    task_id: str


class TierAnswer(Answer):
    tier: int
    tier_description: str
    evidence: list[str]
    closest_kernels: list[str]
    facts: dict[str, Any]


class ReferenceFile(BaseModel):
    path: str
    lines: str
    text: str


class ReferenceAnswer(Answer):
    files: list[ReferenceFile]
    liger_version: str


class ProfileAnswer(TaskAnswer):
    profile_hash: str
    profile_path: str
    problems: list[str]
    filled: list[str] = []


class ReviewAnswer(TaskAnswer):
    decision: Decision
    channel: str
    comment: str = ""
    reviewed: str = "profile"


class ScaffoldedFile(BaseModel):
    path: str
    action: Literal["created", "edited", "unchanged", "kept"]
    complete: bool


class ScaffoldAnswer(TaskAnswer):
    files: list[ScaffoldedFile]


class GateResult(BaseModel):
    name: str
    kind: GateKind
    status: GateStatus
    detail: str


class VerifyAnswer(TaskAnswer):
    passed: bool
    gates: list[GateResult]
    attempt: int
    attempts_left: int
    report_path: str
    running: bool = False


class TaskSummary(BaseModel):
    task_id: str
    workflow: str
    operation_name: str
    state: TaskState
    next: str
    updated: str


class StatusAnswer(Answer):
    task_id: str | None = None
    task: dict[str, Any] | None = None
    tasks: list[TaskSummary] | None = None


class FinishAnswer(TaskAnswer):
    decision: Decision
    channel: str
    comment: str = ""
    report_path: str
