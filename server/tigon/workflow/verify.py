"""Run the gates of a task, so that a call may leave and the same call later picks the run up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from tigon.jobs.runner import JobFailed
from tigon.workflow.answers import GateResult
from tigon.workflow.gates import GATES, Context, Gate, Progress, run_gate
from tigon.workflow.refusal import Refusal
from tigon_tools.schema.gates import MachineRequest

CALL_BUDGET_SECONDS = 45.0
"""A call answers within this. The smallest limits seen in clients are 60 s, minus what the way takes."""


@dataclass
class VerifyRun:
    """One run of the gates. results: of the gates that are done, in order.

    attempt: its number, counted from the profile or the last reset. decisions: a human's, before it began.
    abandoned: it was cancelled, and is to be waited for no more.
    """

    gates: tuple[Gate, ...]
    context: Context
    attempt: int
    decisions: int
    finish: Callable[[VerifyRun], None]
    results: list[GateResult] = field(default_factory=list)
    waiters: int = 0
    listeners: list[Progress] = field(default_factory=list)
    task: asyncio.Task[None] | None = None
    abandoned: bool = False

    @property
    def whole(self) -> bool:
        """Every gate, so that passing finishes the stage."""
        return len(self.gates) == len(GATES)

    def start(self) -> None:
        """Begin in the background."""
        self.task = asyncio.get_running_loop().create_task(self._run())

    def abandon(self) -> None:
        """Cancel it; the job that runs is killed as the cancellation arrives."""
        self.abandoned = True
        if self.task is not None:
            self.task.cancel()

    async def wait(self, listener: Progress, seconds: float) -> bool:
        """Wait for the end, at most `seconds`; whether it has come.

        If the caller is cancelled and nobody else waits, the run is cancelled too.

        Raises:
            Refusal: the run ended without a verdict.
        """
        assert self.task is not None
        self.waiters += 1
        self.listeners.append(listener)
        try:
            await asyncio.wait({self.task}, timeout=seconds)
        except asyncio.CancelledError:
            if self.waiters == 1:
                self.abandon()
            raise
        finally:
            self.waiters -= 1
            self.listeners.remove(listener)
        if self.task.cancelled():
            raise Refusal("job", "this run of the gates was cancelled.", "call run_verify again.")
        if self.task.done():
            self.task.result()
        return self.task.done()

    def _say(self, text: str, fraction: float) -> None:
        for listener in self.listeners:
            listener(text, fraction)

    async def _run(self) -> None:
        self._say("looking at the machine", 0.0)
        with suppress(JobFailed):  # the report then has no versions; the gates say what is wrong
            self.context.machine = await self.context.jobs.run("machine", MachineRequest(), device=self.context.device)
        for position, gate in enumerate(self.gates):
            self.context.progress = self._share(position)
            self._say(f"gate {gate.name}", position / len(self.gates))
            self.results.append(await self._one(gate))
        self.finish(self)

    def _share(self, position: int) -> Progress:
        """A gate's own progress as its part of the whole, so that it never goes back."""
        return lambda text, fraction: self._say(text, (position + min(1.0, fraction)) / len(self.gates))

    async def _one(self, gate: Gate) -> GateResult:
        blocking = next((name for name in gate.needs if self._failed(name)), None)
        if blocking is not None:
            detail = f"not run: {blocking} failed."
            return GateResult(name=gate.name, kind=gate.kind, status="skipped", detail=detail)
        return await run_gate(gate, self.context)

    def _failed(self, name: str) -> bool:
        return any(r.name == name and r.status == "failed" for r in self.results)


def chosen_gates(names: Sequence[str] | None) -> tuple[Gate, ...]:
    """The gates by name, in their own order.

    Raises:
        ValueError: listing what there is.
    """
    if names is None:
        return GATES
    if not names:
        raise ValueError("`gates` is empty, so nothing would be checked.")
    known = [gate.name for gate in GATES]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"there is no gate {unknown[0]!r}; there are {', '.join(known)}.")
    return tuple(gate for gate in GATES if gate.name in names)


def all_passed(results: Sequence[GateResult]) -> bool:
    """No hard gate failed, and none was left out for another's failure."""
    return all(r.status in ("passed", "flagged") for r in results if r.kind == "hard")
