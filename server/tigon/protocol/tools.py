"""The tools: names, arguments and descriptions. What a call may do is decided in `tigon.workflow`.

Descriptions are read by a model that pays for every token, in every conversation: what, when, the one trap.
All schemas together stay under 4,000 tokens, each description under 900 characters (some clients cut at
1,024), which tests/client checks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Context, Resolve
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field

from tigon.protocol.progress import reporting
from tigon.protocol.review import ask_human, ask_to_finish, heard
from tigon.protocol.workplace import workflow_of
from tigon.workflow.answers import Answer

Source = Annotated[str, Field(description="`file.py:name`, `package.module:name`, or Python code")]
TaskId = Annotated[str, Field(description="As `emit_profile` gave it")]
Part = Literal["ops", "module", "test", "benchmark"]
Workflow = Literal["liger-kernel-dev", "liger-autopatch", "liger-kernel-perf"]
Device = Literal["auto", "cpu", "cuda"]


class Input(BaseModel):
    """One argument of the reference: a tensor has a shape, a scalar a value."""

    model_config = ConfigDict(extra="forbid")

    name: str
    shape: list[int] | None = None
    dtype: str = "float32"
    requires_grad: bool | None = None
    value: Any = None


@dataclass(frozen=True)
class ToolSpec:
    """reads: changes nothing; writes: changes files of the workspace (not only Tigon's own records)."""

    run: Callable[..., Any]
    title: str
    description: str
    reads: bool = False
    repeats_safely: bool = False

    @property
    def annotations(self) -> ToolAnnotations:
        """All four hints. Nothing is destructive: files of a human's are kept. Nothing leaves this
        machine."""
        return ToolAnnotations(
            title=self.title,
            read_only_hint=self.reads,
            destructive_hint=False,
            idempotent_hint=self.reads or self.repeats_safely,
            open_world_hint=False,
        )


async def classify_tier(
    source: Source,
    ctx: Context[Any, Any],
    entry: Annotated[str | None, Field(description="The name in `source`, where that is code")] = None,
    inputs: list[Input] | None = None,
) -> CallToolResult:
    specs = None if inputs is None else [spec.model_dump(exclude_none=True) for spec in inputs]
    async with reporting(ctx, "tracing the reference") as progress:
        return tell(await workflow_of(ctx).classify_tier(source, entry, specs, progress))


async def get_reference(
    ctx: Context[Any, Any],
    kernel: Annotated[str | None, Field(description="Its file name in ops, e.g. `swiglu`")] = None,
    tier: Literal[1, 2, 3] | None = None,
    part: Part | None = None,
) -> CallToolResult:
    return tell(workflow_of(ctx).get_reference(kernel, tier, part))


async def emit_profile(
    workflow: Workflow,
    profile: Annotated[dict[str, Any], Field(description="Needs operation_name and reference; see the skill")],
    ctx: Context[Any, Any],
    task_id: Annotated[str | None, Field(description="To revise; left out, a task is opened")] = None,
) -> CallToolResult:
    async with reporting(ctx, "checking the profile against the facts") as progress:
        return tell(await workflow_of(ctx).emit_profile(workflow, profile, task_id, progress))


async def request_review(
    task_id: TaskId, ctx: Context[Any, Any], said: Annotated[ElicitationResult[Any], Resolve(ask_human)]
) -> CallToolResult:
    answer = heard(said, task_id, ctx)
    return tell(workflow_of(ctx).record_decision(task_id, answer.hash, answer.decision, answer.channel, answer.comment))


async def scaffold_kernel(task_id: TaskId, ctx: Context[Any, Any]) -> CallToolResult:
    async with reporting(ctx, "writing the files of the approved profile") as progress:
        return tell(await workflow_of(ctx).scaffold_kernel(task_id, progress))


async def run_verify(
    task_id: TaskId,
    ctx: Context[Any, Any],
    device: Device = "auto",
    gates: Annotated[list[str] | None, Field(description="Only these; does not finish the stage")] = None,
) -> CallToolResult:
    async with reporting(ctx, "running the gates") as progress:
        return tell(await workflow_of(ctx).run_verify(task_id, device, gates, progress))


async def task_status(
    ctx: Context[Any, Any], task_id: Annotated[str | None, Field(description="Left out: all tasks")] = None
) -> CallToolResult:
    return tell(workflow_of(ctx).task_status(task_id))


async def finish_task(
    task_id: TaskId, ctx: Context[Any, Any], said: Annotated[ElicitationResult[Any], Resolve(ask_to_finish)]
) -> CallToolResult:
    answer = heard(said, task_id, ctx)
    return tell(workflow_of(ctx).finish(task_id, answer.hash, answer.decision, answer.channel, answer.comment))


def tell(answer: Answer) -> CallToolResult:
    """Everything in the structured content, which is all that some clients give their model."""
    return CallToolResult(
        content=[TextContent(type="text", text=answer.model_dump_json())],
        structured_content=answer.model_dump(mode="json"),
    )


TOOLS: tuple[ToolSpec, ...] = (
    ToolSpec(
        classify_tier,
        "Classify an operation",
        "Trace a PyTorch reference, forward and backward, on the CPU: which Liger tier it is (1 "
        "element-wise, 2 row reductions, 3 everything else) with evidence, the closest Liger kernels, and "
        "the facts that a profile is checked against: saved tensors, gradients, bytes, flops. Call it "
        "first, also to see whether a reference can be traced at all. The reference is an nn.Module or a "
        "function of tensors and scalars; scalars in its signature stay arguments of the kernel. Without "
        "`inputs`, an `example_inputs()` beside it is used. Trap: the reference defines what is right, so "
        "write it plainly, not fused or optimised.",
        reads=True,
    ),
    ToolSpec(
        get_reference,
        "Read Liger's code",
        "Liger's own code for one kernel (`kernel`) or for a typical kernel of a tier (`tier`), from this "
        "workspace, so it is the version in use. `part` narrows it to ops, module, test or benchmark. Use "
        "it to see the house style before finishing a scaffold; the liger://index resource lists kernels "
        "by tier.",
        reads=True,
    ),
    ToolSpec(
        emit_profile,
        "Write the profile",
        "Open a task, or revise its profile, for a human to approve. Give what you know: `operation_name` "
        "(snake_case) and `reference` ({source, entry, inputs} as in classify_tier) are required; what "
        "you leave out is filled from the facts. What you claim and the facts contradict comes back in "
        "`problems`, with the fact: correct the claim, not the fact. Empty `problems`: it may go to "
        "request_review. Trap: any change voids an approval.",
    ),
    ToolSpec(
        request_review,
        "Ask the human",
        "Put what is pending (a profile, a diff, a blocked task) before the human and wait. Answers "
        "approved, rejected (revise what the comment says) or pending (nobody decided: do not go on, do "
        "not ask again at once; tell the human to run `tigon review TASK` in a terminal). You cannot "
        "approve anything yourself.",
    ),
    ToolSpec(
        scaffold_kernel,
        "Write the kernel",
        "After the human's approval: write ops file, module, functional entry, exports, unit test and "
        "benchmark in Liger's layout, forward and backward generated from the traced graph. Tier 1 comes "
        "out complete; read it before changing it. Running it twice changes nothing; files that were "
        "edited since are kept and said so. Refused before the approval or after a change of profile or "
        "reference.",
        repeats_safely=True,
    ),
    ToolSpec(
        run_verify,
        "Run the gates",
        "Run the gates of the task and write the report: integrity, import, style, unit tests, and the "
        "judge, which compares forward and gradients with the reference in float64 over hard shapes, "
        "dtypes and layouts. May answer with `running: true`: call it again with the same arguments to "
        "pick the run up. Three failed attempts at a hard gate block the task, so read `detail` and fix "
        "the cause before the next run. On a machine without a GPU it uses Triton's interpreter.",
    ),
    ToolSpec(
        task_status,
        "Where things stand",
        "A task's state, gates, reviews and what comes next, or all tasks without `task_id`. Call it when "
        "you come back to a task or a call was cut off.",
        reads=True,
    ),
    ToolSpec(
        finish_task,
        "Finish",
        "When run_verify has passed: put the diff and the report before the human. Approved: the task is "
        "done. Rejected: work on what the comment says and verify again. Pending: as in request_review.",
    ),
)
