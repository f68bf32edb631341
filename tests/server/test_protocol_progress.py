"""Progress of a call: passed on, repeated in silence, always rising; and failures come through unwrapped."""

from __future__ import annotations

import itertools
from typing import Any, cast

import anyio
import pytest
from mcp.server.mcpserver import Context

from tigon.protocol import progress as module


class Notes:
    """Where notifications go: the part of a Context that is used, with an event for the next one."""

    def __init__(self) -> None:
        self.sent: list[tuple[float, float | None, str | None]] = []
        self.next = anyio.Event()

    async def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.sent.append((progress, total, message))
        self.next.set()

    async def wait_for(self, count: int) -> None:
        while len(self.sent) < count:
            await self.next.wait()
            self.next = anyio.Event()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POLL_SECONDS", 0.001)
    monkeypatch.setattr(module, "REPEAT_SECONDS", 0.005)


def test_words_are_passed_on_and_repeated() -> None:
    async def scenario() -> Notes:
        notes = Notes()
        with anyio.fail_after(10):
            async with module.reporting(cast(Context[Any, Any], notes), "begin") as progress:
                await notes.wait_for(3)  # the same word, repeated
                progress("half", 0.5)
                while notes.sent[-1][2] != "half":
                    await notes.wait_for(len(notes.sent) + 1)
                progress("back", 0.2)  # a job may count badly
                while notes.sent[-1][2] != "back":
                    await notes.wait_for(len(notes.sent) + 1)
        return notes

    sent = anyio.run(scenario).sent
    assert [message for _, _, message in sent][:3] == ["begin"] * 3
    values = [value for value, _, _ in sent]
    assert all(later > earlier for earlier, later in itertools.pairwise(values))
    assert all(total is not None and value <= total for value, total, _ in sent)
    assert next(value for value, _, message in sent if message == "half") == pytest.approx(0.5)


def test_a_failure_is_itself() -> None:
    async def scenario() -> None:
        async with module.reporting(cast(Context[Any, Any], Notes()), "begin"):
            raise LookupError("as it was")

    with pytest.raises(LookupError, match="as it was"):
        anyio.run(scenario)
