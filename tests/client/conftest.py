"""Servers that tests share: each start costs a second."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from stdio_session import ERAS, Session, connected


@pytest.fixture(scope="session")
def portal() -> Iterator[BlockingPortal]:
    with start_blocking_portal() as portal:
        yield portal


@pytest.fixture(scope="session", params=list(ERAS))
def era(request: pytest.FixtureRequest) -> str:
    """Both protocol eras: what is true of one must be true of the other."""
    return str(request.param)


@pytest.fixture(scope="session")
def outside(portal: BlockingPortal, era: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A session with a server that was started in an empty folder."""
    with connected(portal, tmp_path_factory.mktemp("nowhere"), era) as session:
        yield session


@pytest.fixture(scope="session")
def workspace(pristine_liger: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One workspace for all tests that open tasks but do not write kernels."""
    root = tmp_path_factory.mktemp("shared") / "liger"
    shutil.copytree(pristine_liger, root, symlinks=True)
    return root
