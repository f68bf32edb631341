"""Any right candidate passes, and any candidate with one constant or one function changed fails."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tigon_tools.judge.judge_job import run
from tigon_tools.schema.judge import JudgeRequest, JudgeResult
from tigon_tools.schema.reference import InputSpec, Reference

FUNCTIONS = ("torch.sigmoid", "torch.tanh", "torch.sin", "F.softplus", "torch.erf", "F.gelu", "torch.atan")
OPERATORS = ("+", "-", "*")
CONSTANTS = st.floats(0.3, 2.0).map(lambda value: round(value, 3))

# Two terms of two inputs; none of its parts can cancel another, so every change of a part changes the result.
PIECES = st.tuples(
    CONSTANTS, st.sampled_from(FUNCTIONS), CONSTANTS, st.sampled_from(OPERATORS), CONSTANTS, st.sampled_from(FUNCTIONS)
)  # fmt: skip


def body(pieces: tuple[float | str, ...]) -> str:
    scale, first, slope, operator, weight, second = pieces
    return f"{scale} * {first}({slope} * x) * y {operator} {weight} * {second}(y)"


def module(expression: str) -> str:
    return f"import torch\nimport torch.nn.functional as F\n\n\ndef f(x, y):\n    return {expression}\n"


def upcast(expression: str) -> str:
    """As a kernel computes it: in float32, rounded once."""
    text = module(expression).replace("def f", "def exact")
    return f"{text}\n\ndef f(x, y):\n    return exact(x.float(), y.float()).to(x.dtype)\n"


def judged(reference: str, candidate: str, dtypes: tuple[str, ...]) -> JudgeResult:
    inputs = (InputSpec("x", (3, 48)), InputSpec("y", (3, 48)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "candidate.py"
        path.write_text(candidate)
        return run(JudgeRequest(f"{path}:f", Reference(reference, "f", inputs=inputs), dtypes=dtypes))


def shown(result: JudgeResult) -> str:
    return "\n".join(f"{f.status} {f.check}: {f.detail} [{f.case}]" for f in result.findings)


@given(PIECES)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_same_in_float32_passes(pieces: tuple[float | str, ...]) -> None:
    result = judged(module(body(pieces)), upcast(body(pieces)), ("float32", "float16", "bfloat16"))
    assert result.passed, shown(result)


@given(PIECES, st.integers(0, 5), st.data())
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def test_one_change_fails(pieces: tuple[float | str, ...], position: int, data: st.DataObject) -> None:
    old = pieces[position]
    if isinstance(old, float):
        new: float | str = data.draw(st.sampled_from([old * 1.0005, old + 0.01, 0.0, -old]))
    else:
        choices = FUNCTIONS if old in FUNCTIONS else OPERATORS
        new = data.draw(st.sampled_from([c for c in choices if c != old]))
    changed = (*pieces[:position], new, *pieces[position + 1 :])
    result = judged(module(body(pieces)), upcast(body(changed)), ("float32",))
    assert not result.passed, body(changed)
    assert "forward" in [f.check for f in result.findings if f.status == "failed"], shown(result)
