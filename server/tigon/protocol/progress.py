"""Progress notifications of a running call.

Clients that show progress want to see it move, and clients with an idle limit count silence against the
call. So what a job says is passed on at once, and while it says nothing its last word is repeated.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.server.mcpserver import Context

Progress = Callable[[str, float], None]
"""What a job is doing, and how far it is from 0 to 1."""

REPEAT_SECONDS = 10.0
"""Longest silence. The tightest limit seen in a client is 60 s; two repeats may get lost."""
POLL_SECONDS = 0.2
"""How soon a word of the job is passed on. Polled, because a job may speak from another thread."""
SMALLEST_STEP = 1e-4
"""The specification wants every progress value larger than the one before, also where nothing moved."""


@asynccontextmanager
async def reporting(ctx: Context[Any, Any], first: str) -> AsyncIterator[Progress]:
    """Yields the function that a job reports to; `first` is said before it says anything."""
    latest: tuple[str, float] = (first, 0.0)

    def progress(message: str, fraction: float) -> None:
        nonlocal latest
        latest = (message, fraction)

    async def pass_on() -> None:
        said: tuple[str, float] | None = None
        reported = -SMALLEST_STEP
        silent = 0.0
        while True:
            if latest != said or silent >= REPEAT_SECONDS:
                said, silent = latest, 0.0
                message, fraction = said
                reported = max(min(fraction, 1.0), reported + SMALLEST_STEP)
                await ctx.report_progress(reported, max(1.0, reported), message)
            await anyio.sleep(POLL_SECONDS)
            silent += POLL_SECONDS

    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pass_on)
        try:
            yield progress
        except Exception as problem:  # raised below: a task group would wrap it in an ExceptionGroup
            failure = problem
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
