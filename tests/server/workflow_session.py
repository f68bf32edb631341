"""A workflow on a real Liger checkout with real jobs, and a human's answers, for tests that are ordinary functions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from tigon.workflow.service import KernelWorkflow

SOURCE = "import torch\n\n\ndef {name}(x: torch.Tensor, alpha: float = 1.0) -> torch.Tensor:\n    return x * torch.sigmoid(alpha * x)\n"
QUICK = ["integrity", "scaffold_tests", "style"]
"""Gates that take no job; the judge and the unit tests are in the client's tests of the whole loop."""


def silent(text: str, fraction: float) -> None:
    """Nobody listens."""


def profile_of(name: str) -> dict[str, object]:
    return {"operation_name": name, "reference": {"source": SOURCE.format(name=name)}}


class Session:
    """A workflow and the human's answers."""

    def __init__(self, root: Path) -> None:
        self.flow = KernelWorkflow(root)
        self.root = root

    async def emit(self, name: str = "swish_beta", task_id: str | None = None, **claims: object) -> str:
        profile = {**profile_of(name), **claims}
        return (await self.flow.emit_profile("liger-kernel-dev", profile, task_id, silent)).task_id

    def say(self, task_id: str, decision: str = "approved", comment: str = "") -> str:
        shown = self.flow.pending_review(task_id).hash
        return self.flow.record_decision(task_id, shown, decision, "terminal", comment).state  # type: ignore[arg-type]

    async def scaffolded(self, name: str = "swish_beta") -> str:
        task_id = await self.emit(name)
        self.say(task_id)
        await self.flow.scaffold_kernel(task_id, silent)
        return task_id

    async def gates(self, task_id: str, names: list[str]) -> dict[str, tuple[str, str]]:
        answer = await self.flow.run_verify(task_id, "cpu", names, silent)
        return {gate.name: (gate.status, gate.detail) for gate in answer.gates}

    def path(self, task: str = "swish_beta") -> Path:
        return self.root / f"src/liger_kernel/ops/{task}.py"


def in_session(root: Path, body: Callable[[Session], Awaitable[None]]) -> None:
    async def run() -> None:
        session = Session(root)
        try:
            await body(session)
        finally:
            await session.flow.close()

    asyncio.run(run())
