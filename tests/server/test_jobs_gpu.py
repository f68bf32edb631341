"""Jobs on a GPU: one clean CUDA context each, whatever the one before did to its own."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from job_session import AMPLE, JobSession, job_session

from tigon_tools.schema.gates import MachineRequest, MachineResult

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def session() -> Iterator[JobSession]:
    with job_session() as session:
        yield session


def test_each_job_has_a_cuda_context_of_its_own(session: JobSession) -> None:
    for _ in range(2):
        assert json.loads(session.text("computes_on_gpu", device="cuda")) == {"fresh": True, "right": True}


def test_a_write_outside_costs_one_job(session: JobSession) -> None:
    failure = session.failure("writes_outside_on_gpu", device="cuda")
    assert failure.kind == "crashed"
    assert "illegal memory access" in failure.message
    assert json.loads(session.text("computes_on_gpu", device="cuda"))["right"]


def test_a_full_gpu_is_out_of_memory(session: JobSession) -> None:
    failure = session.failure("fills_the_gpu", device="cuda", limits=AMPLE)
    assert failure.kind == "memory"
    assert "CUDA out of memory" in failure.message


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_parent_has_no_second_thread(session: JobSession, device: str) -> None:
    assert session.text("threads_of_parent", device=device) == "1"


def test_the_parent_that_forks_gpu_jobs_has_not_opened_the_driver(session: JobSession) -> None:
    assert "nvidia" not in session.text("open_files", device="cuda")


def test_a_job_for_the_cpu_sees_no_gpu(session: JobSession) -> None:
    assert session.text("sees_a_gpu", device="cuda") == "True"
    assert session.text("sees_a_gpu", device="cpu") == "False"


def test_the_machine_job_sees_it_all_the_same(session: JobSession) -> None:
    async def run() -> MachineResult:
        result = await session.runner.run("machine", MachineRequest(), device="cpu")
        assert isinstance(result, MachineResult)
        return result

    assert session.portal.call(run).cuda
