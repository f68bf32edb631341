"""The whole loop as a client drives it, in both eras: refused, reviewed, scaffolded, verified, finished."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio.from_thread import BlockingPortal
from mcp_types import ElicitRequestFormParams, ElicitResult, TextResourceContents
from stdio_session import Session, connected

pytestmark = pytest.mark.slow

SOURCE = """\
import torch

def tanh_gate(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.tanh(a) * b
"""
INPUTS = [{"name": "a", "shape": [4, 300]}, {"name": "b", "shape": [4, 300]}]
PROFILE = {
    "operation_name": "tanh_gate",
    "reference": {"source": SOURCE, "entry": "tanh_gate", "inputs": INPUTS},
}


@pytest.fixture
def session(portal: BlockingPortal, era: str, liger_workspace: Path) -> Iterator[tuple[Session, Path]]:
    """A workspace of its own: the loop writes into it."""
    with connected(portal, liger_workspace, era) as session:
        yield session, liger_workspace


def approve(question: ElicitRequestFormParams) -> ElicitResult:
    choices = question.requested_schema["properties"]["decision"]["enum"]
    (choice,) = [choice for choice in choices if choice.startswith("approve ")]
    return ElicitResult(action="accept", content={"decision": choice})


def test_from_reference_to_done(session: tuple[Session, Path]) -> None:
    client, root = session
    client.human = approve
    ops = root / "src" / "liger_kernel" / "ops" / "tanh_gate.py"
    task_id = client.works("emit_profile", workflow="liger-kernel-dev", profile=PROFILE)["task_id"]

    assert client.refused("scaffold_kernel", task_id=task_id).startswith("gate ")
    assert client.refused("run_verify", task_id=task_id).startswith("gate ")
    assert not ops.exists()

    assert client.works("request_review", task_id=task_id)["decision"] == "approved"
    files = client.works("scaffold_kernel", task_id=task_id)["files"]
    assert len(files) == 7 and all(file["complete"] for file in files)
    assert ops.is_file()
    again = client.works("scaffold_kernel", task_id=task_id)["files"]
    assert {file["action"] for file in again} == {"unchanged"}

    assert client.refused("finish_task", task_id=task_id).startswith("gate ")
    answer = client.works("run_verify", task_id=task_id, device="cpu")
    while answer.get("running"):
        answer = client.works("run_verify", task_id=task_id, device="cpu")
    assert answer["passed"], answer["gates"]
    assert {"integrity", "import", "style", "unit_tests", "judge"} <= {gate["name"] for gate in answer["gates"]}

    (report,) = client.portal.call(client.client.read_resource, f"tigon://tasks/{task_id}/report").contents
    assert isinstance(report, TextResourceContents)
    assert "judge" in report.text and "tanh_gate" in report.text

    finished = client.works("finish_task", task_id=task_id)
    assert (finished["decision"], finished["state"]) == ("approved", "done")
    assert (root / finished["report_path"]).is_file()
    assert len(client.asked) == 2
