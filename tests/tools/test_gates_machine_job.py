"""Job `machine`: versions as the packages say them, and what is missing with the command that gets it."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import shutil
import sys
from pathlib import Path

import pytest

from tigon_tools import gpus
from tigon_tools.gates import machine_job
from tigon_tools.schema.gates import MachineRequest


def test_versions_are_those_of_the_packages() -> None:
    import torch

    result = machine_job.run(MachineRequest())
    assert (result.python, result.executable) == (platform.python_version(), sys.executable)
    assert result.torch == importlib.metadata.version("torch")
    assert result.triton == importlib.import_module("triton").__version__
    assert result.numpy == importlib.import_module("numpy").__version__
    assert result.cuda == torch.cuda.is_available()
    assert (result.gpu is not None) == result.cuda
    assert result.ncu == shutil.which("ncu")
    assert "repaired" in result.interpreter


def test_gpus_that_are_hidden_come_back_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"CUDA_VISIBLE_DEVICES": "2,3", "PATH": "/bin"})
    before = dict(os.environ)
    gpus.hide_gpus()
    gpus.hide_gpus()
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""
    assert gpus.environment_with_gpus() == before


def test_nvidias_tools_are_found_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ncu", "compute-sanitizer"):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    result = machine_job.run(MachineRequest())
    assert result.ncu == str(tmp_path / "ncu")
    assert result.compute_sanitizer == str(tmp_path / "compute-sanitizer")


def test_a_driver_without_a_cuda_build_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    if torch.version.cuda is not None:
        pytest.skip("this torch has CUDA")
    (tmp_path / "nvidia-smi").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    (problem,) = [p for p in machine_job.run(MachineRequest()).problems if "torch" in p]
    assert "built without CUDA" in problem


def test_a_missing_package_comes_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.metadata.version

    def version(name: str) -> str:
        if name == "pytest":
            raise importlib.metadata.PackageNotFoundError(name)
        return found(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    (problem,) = [p for p in machine_job.run(MachineRequest()).problems if p.startswith("pytest")]
    assert f"{sys.executable} -m pip install pytest" in problem
