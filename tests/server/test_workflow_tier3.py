"""Operations whose kernels nobody generates: a scaffold that says what is left, and gates that wait for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from workflow_session import Session, in_session, silent

from tigon.workflow.refusal import Refusal
from tigon.workflow.unwritten import unwritten

HEADER = "import torch\nimport torch.nn.functional as F\n\n\n"
REFERENCES = {
    "linear_loss": (
        "def linear_loss(x, w, label):\n    return F.cross_entropy(x @ w.t(), label)\n",
        [
            {"name": "x", "shape": [8, 32]},
            {"name": "w", "shape": [64, 32]},
            {"name": "label", "shape": [8], "dtype": "int64", "requires_grad": False},
        ],
        "x = torch.randn(8, 32), torch.randn(64, 32), torch.zeros(8, dtype=torch.int64)",
        ("mm(x", "cross_entropy.py"),
    ),
    "running_total": (
        "def running_total(x, scale: float = 2.0):\n    return torch.cumsum(x * scale, -1)\n",
        [{"name": "x", "shape": [8, 32]}],
        "x = (torch.randn(8, 32),)",
        ("cumsum(x * scale, -1)", "src/liger_kernel/ops/"),
    ),
    "in_order": (
        "def in_order(x):\n    return torch.sort(x, -1)[0] * 2\n",
        [{"name": "x", "shape": [8, 32]}],
        "x = (torch.randn(8, 32),)",
        ("sort(x)[0] * 2", "src/liger_kernel/ops/"),
    ),
}
CALL = """
import torch
from liger_kernel.transformers import {module}
{inputs}
try:
    {module}()(*x)
except NotImplementedError as problem:
    print(problem)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", REFERENCES)
def test_the_scaffold_is_complete_but_for_the_kernels_and_says_what_they_compute(
    name: str, liger_workspace: Path
) -> None:
    code, inputs, values, mentioned = REFERENCES[name]

    async def body(s: Session) -> None:
        profile = {"operation_name": name, "reference": {"source": HEADER + code, "entry": name, "inputs": inputs}}
        emitted = await s.flow.emit_profile("liger-kernel-dev", profile, None, silent)
        assert emitted.problems == []
        s.say(emitted.task_id)
        written = await s.flow.scaffold_kernel(emitted.task_id, silent)
        assert [f.path for f in written.files if not f.complete] == [f"src/liger_kernel/ops/{name}.py"]
        assert "write the kernels" in written.next
        with pytest.raises(Refusal, match=f"2 functions of src/liger_kernel/ops/{name}") as refused:
            await s.flow.run_verify(emitted.task_id, "cpu", None, silent)
        for text in mentioned:
            assert text in str(refused.value)
        status = s.flow.task_status(emitted.task_id).task
        assert status is not None
        assert status["attempts"] == 0

    in_session(liger_workspace, body)
    module = "Liger" + "".join(word.capitalize() for word in name.split("_"))
    done = subprocess.run(
        [sys.executable, "-c", CALL.format(module=module, inputs=values)],
        env={"PYTHONPATH": str(liger_workspace / "src"), "PATH": "", "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert f"{name}_forward is not written yet" in done.stdout
    for text in mentioned:
        assert text in done.stdout


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ('def f(x):\n    """Maths."""\n    raise NotImplementedError("write y")\n', ["f"]),
        ('def f(x):\n    if x is None:\n        raise NotImplementedError("no")\n    return x\n', []),
        ("def f(x):\n    raise ValueError('x')\n", []),
        ("class A:\n    def f(self):\n        raise NotImplementedError('x')\n", []),
        ("def broken(:\n", []),
    ],
)
def test_what_counts_as_unwritten(source: str, names: list[str]) -> None:
    assert list(unwritten(source)) == names
