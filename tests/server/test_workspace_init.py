"""`tigon init`: a workspace from the sdist, or nothing at all."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from tigon.workspace import init
from tigon.workspace.init import CannotInit, create_workspace
from tigon.workspace.layout import FUNCTIONAL, OPS_INIT, TRANSFORMERS_INIT, NotAWorkspace, Workspace, is_workspace


def test_a_workspace_is_the_whole_repository_under_git(liger_workspace: Path) -> None:
    assert is_workspace(liger_workspace)
    assert Workspace.open(liger_workspace).liger_version == init.DEFAULT_VERSION
    for path in ("test/transformers/test_swiglu.py", "benchmark/scripts/utils.py", "pyproject.toml"):
        assert (liger_workspace / path).is_file()
    status = subprocess.run(["git", "status", "--porcelain"], cwd=liger_workspace, capture_output=True, text=True)
    assert (status.returncode, status.stdout) == (0, "")


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(CannotInit, match="is not empty"):
        create_workspace(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def archive(path: Path, members: dict[str, str], link: tuple[str, str] | None = None) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
        if link is not None:
            info = tarfile.TarInfo(link[0])
            info.type, info.linkname = tarfile.SYMTYPE, link[1]
            tar.addfile(info)
    return path


@pytest.mark.parametrize(
    ("members", "link", "says"),
    [
        ({"liger/readme": "x"}, None, "not a checkout"),
        ({"../escaped": "x"}, None, "cannot be unpacked|does not stay"),
        ({"liger/readme": "x"}, ("liger/link", "/etc"), "cannot be unpacked|does not stay"),
    ],
)
def test_an_archive_that_is_no_liger_leaves_nothing_behind(
    members: dict[str, str], link: tuple[str, str] | None, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = archive(tmp_path / "made.tar.gz", members, link)
    monkeypatch.setattr(init, "_sdist", lambda version, say: made)
    target = tmp_path / "there" / "liger"
    with pytest.raises(CannotInit, match=says):
        create_workspace(target)
    assert not target.exists()
    assert not list(target.parent.iterdir())
    assert not (tmp_path / "escaped").exists()


def test_a_version_that_does_not_exist_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(CannotInit, match=r"liger-kernel 0\.0\.0\.9 cannot be downloaded"):
        create_workspace(tmp_path / "liger", "0.0.0.9")
    assert not (tmp_path / "liger").exists()


@pytest.mark.parametrize("version", ["../0.8.5", "newest", ""])
def test_what_is_no_version_is_refused_before_anything_is_fetched(version: str, tmp_path: Path) -> None:
    if version:
        with pytest.raises(CannotInit, match="is not a version"):
            create_workspace(tmp_path / "liger", version)
        assert not list(tmp_path.iterdir())
    else:
        assert Workspace.open(create_workspace(tmp_path / "liger", version).root).liger_version == init.DEFAULT_VERSION


def test_the_commit_is_the_new_folders_whatever_git_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a git hook, which sets GIT_DIR, and for a user with hooks of their own."""
    other = tmp_path / "other"
    subprocess.run(["git", "init", "--quiet", str(other)], check=True)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("pre-commit", "post-commit"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran-{name}\nexit 1\n")
        (hooks / name).chmod(0o755)
    config = tmp_path / "gitconfig"
    config.write_text(f"[core]\n\thooksPath = {hooks}\n[commit]\n\tgpgsign = true\n")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text(config.read_text())
    monkeypatch.setattr(init, "_sdist", lambda version, say: small_liger(tmp_path / "small.tar.gz"))
    root = create_workspace(tmp_path / "liger").root
    monkeypatch.delenv("GIT_DIR")
    log = subprocess.run(["git", "log", "--format=%s"], cwd=root, capture_output=True, text=True)
    assert log.stdout == f"liger-kernel {init.DEFAULT_VERSION}, as released\n"
    assert not list(tmp_path.glob("ran-*"))
    assert not (other / ".git" / "index").exists()


def test_a_full_disk_is_said_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(init, "_sdist", lambda version, say: small_liger(tmp_path / "small.tar.gz"))

    def full(root: Path, version: str) -> None:
        raise OSError(28, "No space left on device", str(root))

    monkeypatch.setattr(init, "_commit", full)
    with pytest.raises(CannotInit, match="No space left on device"):
        create_workspace(tmp_path / "there" / "liger")
    assert not list((tmp_path / "there").iterdir())


def small_liger(path: Path) -> Path:
    """An archive with as much of Liger as makes a workspace."""
    paths = (OPS_INIT, TRANSFORMERS_INIT, FUNCTIONAL)
    project = '[project]\nname = "liger_kernel"\nversion = "0.8.5"\n'
    return archive(path, {**{f"liger/{p}": "" for p in paths}, "liger/pyproject.toml": project})


def test_a_workspace_is_found_from_a_folder_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(init, "_sdist", lambda version, say: small_liger(tmp_path / "small.tar.gz"))
    root = create_workspace(tmp_path / "liger").root
    assert Workspace.open(root / "src" / "liger_kernel").root == root


def test_a_folder_without_ligers_layout_is_no_workspace(tmp_path: Path) -> None:
    with pytest.raises(NotAWorkspace, match="not a Liger checkout"):
        Workspace.open(tmp_path)
