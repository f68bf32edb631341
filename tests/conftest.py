"""Real Liger workspaces: made once from the sdist, copied for each test that writes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tigon.workspace.init import create_workspace
from tigon.workspace.remove import remove_kernel


@pytest.fixture(scope="session")
def pristine_liger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Liger as released; nobody writes in it."""
    return create_workspace(tmp_path_factory.mktemp("pristine") / "liger").root


@pytest.fixture
def liger_workspace(pristine_liger: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy that a test may change."""
    root = tmp_path / "liger"
    shutil.copytree(pristine_liger, root, symlinks=True)
    yield root
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def without_relu_squared(liger_workspace: Path) -> Path:
    """Liger without its own `relu_squared`; its test is still there."""
    remove_kernel(liger_workspace, "relu_squared")
    return liger_workspace


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked `gpu` are skipped, with the reason, where there is no CUDA device."""
    if not any(item.get_closest_marker("gpu") for item in items):
        return
    import torch

    if torch.cuda.is_available():
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))
