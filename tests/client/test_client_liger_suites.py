"""Liger's own tests, which nobody here wrote, on what was scaffolded without a hand edit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio.from_thread import BlockingPortal
from stdio_session import Session, connected
from test_client_loop import approve

from tigon.workspace.remove import remove_kernel

pytestmark = pytest.mark.slow

HEADER = "import torch\nimport torch.nn.functional as F\n\n\n"
REFERENCES = {
    "relu_squared": "def relu_squared(x):\n    return torch.square(F.relu(x))\n",
    "silu_mul": "def silu_mul(a, b, gate_multiplier: float = 1.0):\n    return F.silu(gate_multiplier * a) * b\n",
    "gelu_mul": 'def gelu_mul(a, b):\n    return F.gelu(a, approximate="tanh") * b\n',
}


@pytest.fixture(scope="module")
def scaffolded(
    portal: BlockingPortal, pristine_liger: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """One workspace with all three, written by one server in one session."""
    root = tmp_path_factory.mktemp("suites") / "liger"
    shutil.copytree(pristine_liger, root, symlinks=True)
    remove_kernel(root, "relu_squared")
    with connected(portal, root, "2026-07-28") as session:
        session.human = approve
        for name in REFERENCES:
            scaffold(session, name)
    yield root


def scaffold(session: Session, name: str) -> None:
    profile = {"operation_name": name, "reference": {"source": HEADER + REFERENCES[name], "entry": name}}
    emitted = session.works("emit_profile", workflow="liger-kernel-dev", profile=profile)
    assert emitted["problems"] == []
    assert session.works("request_review", task_id=emitted["task_id"])["decision"] == "approved"
    files = session.works("scaffold_kernel", task_id=emitted["task_id"])["files"]
    assert all(file["complete"] for file in files)


def run_ligers(root: Path, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "log_cli=false", *arguments],
        cwd=root,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(root / "src"), str(Path(__file__).parent)]),
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return done.stdout


PLUGIN = ("-p", "tigon_tools.interpreter.pytest_plugin")


def test_relu_squared(scaffolded: Path) -> None:
    said = run_ligers(scaffolded, *PLUGIN, "test/transformers/test_relu_squared.py")
    assert "9 passed, 9 skipped" in said, said[-500:]


@pytest.mark.parametrize(
    ("file", "replaced", "by"),
    [
        ("test_swiglu.py", "LigerSiLUMulFunction", "liger_kernel.ops.silu_mul:LigerSiluMulFunction"),
        ("test_geglu.py", "LigerGELUMulFunction", "liger_kernel.ops.gelu_mul:LigerGeluMulFunction"),
    ],
)
def test_functional_correctness(file: str, replaced: str, by: str, scaffolded: Path) -> None:
    said = run_ligers(
        scaffolded, *PLUGIN, "-p", "put_in_place", f"test/transformers/{file}", "-k", "test_correctness_functional",
        TIGON_PUT_IN_PLACE=f"{replaced}={by}",
    )  # fmt: skip
    assert "4 passed" in said, said[-500:]
