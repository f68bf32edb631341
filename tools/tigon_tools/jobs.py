"""The jobs there are: name, what each takes and returns, and where its code is.

Code is imported when a job runs, so the list itself costs nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tigon_tools.schema import gates, generate, judge, reference

Progress = Callable[[str, float], None]
"""Reports what a job is doing: a short line, and how far it is from 0 to 1."""


@dataclass(frozen=True)
class Job:
    """module: has a function `run(request, progress) -> result`."""

    name: str
    request: type[Any]
    result: type[Any]
    module: str

    def load(self) -> Callable[[Any, Progress], Any]:
        run: Callable[[Any, Progress], Any] = importlib.import_module(self.module).run
        return run


JOBS: dict[str, Job] = {
    job.name: job
    for job in (
        Job("resolve", reference.ResolveRequest, reference.ResolveResult, "tigon_tools.trace.resolve_job"),
        Job("trace", reference.TraceRequest, reference.TraceResult, "tigon_tools.trace.trace_job"),
        Job("generate", generate.GenerateRequest, generate.GenerateResult, "tigon_tools.codegen.generate_job"),
        Job("judge", judge.JudgeRequest, judge.JudgeResult, "tigon_tools.judge.judge_job"),
        Job("import", gates.ImportRequest, gates.ImportResult, "tigon_tools.gates.import_job"),
        Job("unit_tests", gates.UnitTestRequest, gates.UnitTestResult, "tigon_tools.gates.unit_test_job"),
        Job("machine", gates.MachineRequest, gates.MachineResult, "tigon_tools.gates.machine_job"),
    )
}
