"""Job `judge`: does a candidate compute what the reference says, forward and backward?"""

from __future__ import annotations

from dataclasses import dataclass

from tigon_tools.schema.reference import Reference


@dataclass(frozen=True)
class JudgeRequest:
    """candidate: "file.py:name" or "package.module:name"; an `autograd.Function` is taken by `.apply`.

    workspace: its `src` goes in front of `sys.path` of the candidate's process.
    device: "cpu" (Triton's interpreter) or "cuda".
    dtypes: torch names; None means float32, float16 and bfloat16.
    overwrites: inputs whose memory the backward may use for gradients, as Liger's GLU kernels do;
        any other change of an input fails.
    kernels: fail where the forward launches no Triton kernel, as is right for what replaces one.
    max_seconds: no new case is started after this; what was left out becomes a skipped finding.
    """

    candidate: str
    reference: Reference
    workspace: str | None = None
    device: str = "cpu"
    dtypes: tuple[str, ...] | None = None
    seed: int = 0
    max_seconds: float = 120.0
    overwrites: tuple[str, ...] = ()
    kernels: bool = False


@dataclass(frozen=True)
class Finding:
    """check: "forward", "gradient", "unwritten", "input_modified", …; status: "passed", "failed",
    "flagged" or "skipped"; detail: a sentence that says what is wrong, where and by how much;
    case: the shape, dtype and layout it was seen on ("float16 (7, 33) transposed")."""

    check: str
    status: str
    detail: str
    case: str = ""


@dataclass(frozen=True)
class JudgeResult:
    passed: bool
    findings: tuple[Finding, ...]
    cases: int
    seconds: float
