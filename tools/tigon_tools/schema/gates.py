"""Jobs of `run_verify` that need the author's interpreter: imports and unit tests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ImportRequest:
    """Job `import`: import names from a workspace's `src`, in Triton's interpreter on a CPU.

    names: "package.module:attribute" each.
    """

    workspace: str
    names: tuple[str, ...]
    device: str = "cpu"


@dataclass(frozen=True)
class ImportResult:
    """problems: one sentence for each name that failed, with file and line of the error."""

    passed: bool
    problems: tuple[str, ...]


@dataclass(frozen=True)
class UnitTestRequest:
    """Job `unit_tests`: pytest on files of a workspace. Paths are relative to the workspace.

    max_seconds: for the whole session; a test cut off is reported as such, not as passed.
    """

    workspace: str
    paths: tuple[str, ...]
    device: str = "cpu"
    keyword: str | None = None
    max_seconds: float = 900.0


@dataclass(frozen=True)
class UnitTestOutcome:
    """outcome: "passed", "failed", "skipped", "error" or "cut off"; message: the error's last line
    or the reason for the skip."""

    test: str
    outcome: str
    seconds: float
    message: str = ""


@dataclass(frozen=True)
class UnitTestResult:
    """passed: no failure or error, nothing cut off, and at least one test passed."""

    passed: bool
    outcomes: tuple[UnitTestOutcome, ...]
    seconds: float
    detail: str = ""


@dataclass(frozen=True)
class MachineRequest:
    """Job `machine`: what the interpreter that runs jobs has (for `tigon doctor`)."""

    workspace: str | None = None


@dataclass(frozen=True)
class MachineResult:
    """Versions are None where the package is absent; `problems` say what is missing and how to get it.

    ncu, compute_sanitizer: paths of NVIDIA's profiler and memory checker; None where not on PATH.
    """

    python: str
    executable: str
    torch: str | None
    triton: str | None
    numpy: str | None
    liger_kernel: str | None
    transformers: str | None
    cuda: bool
    gpu: str | None
    interpreter: str
    problems: tuple[str, ...] = ()
    ncu: str | None = None
    compute_sanitizer: str | None = None
