"""`tigon init`: a Liger workspace from the sdist of `liger-kernel`, which holds the whole repository."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from tigon.workspace.layout import Workspace, is_workspace

DEFAULT_VERSION = "0.8.5"
"""The version that Tigon's templates and its index of kernels were checked against."""

DOWNLOAD_SECONDS = 600
"""pip builds the metadata of an sdist, which on a slow machine takes a minute."""

GITIGNORE = "*\n"
"""In `.tigon/`: nothing of Tigon's own records is part of a contribution."""


class CannotInit(Exception):
    """No workspace was made; the text says why and what to do. Nothing is left behind."""


def create_workspace(
    root: Path, version: str | None = None, progress: Callable[[str], None] | None = None
) -> Workspace:
    """Make a workspace in `root`, which must not exist or be empty.

    The sdist is kept in the user's cache, so a second workspace needs no network. The result is a
    git repository with one commit, where git is there.

    Raises:
        CannotInit: the target is in use, or the sdist cannot be had.
    """
    root = root.expanduser().resolve()
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise CannotInit(f"{root} exists and is not empty. Name a new folder.")
    _check_version(version or DEFAULT_VERSION)
    say = progress or (lambda text: None)
    try:
        _make(root, version or DEFAULT_VERSION, say)
    except OSError as problem:
        where = f" ({problem.filename})" if problem.filename else ""
        raise CannotInit(
            f"no workspace was made: {problem.strerror}{where}. Make room, or choose another folder."
        ) from problem
    return Workspace.open(root)


def _make(root: Path, version: str, say: Callable[[str], None]) -> None:
    archive = _sdist(version, say)
    root.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, so that the last step is one rename: a kill leaves no half workspace.
    with tempfile.TemporaryDirectory(prefix=".tigon-init-", dir=root.parent) as folder:
        say(f"unpacking {archive.name}")
        fresh = _unpack(archive, Path(folder))
        (fresh / ".tigon").mkdir()
        (fresh / ".tigon" / ".gitignore").write_text(GITIGNORE)
        _commit(fresh, version)
        if root.exists():
            root.rmdir()
        fresh.rename(root)


def _check_version(version: str) -> None:
    """It becomes part of a file's name and of what pip is told."""
    from packaging.version import InvalidVersion, Version

    try:
        Version(version)
    except InvalidVersion:
        raise CannotInit(f"{version!r} is not a version. Name one as in `--liger {DEFAULT_VERSION}`.") from None


def cache_folder() -> Path:
    """Where sdists are kept."""
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "tigon" / "sdists"


def _sdist(version: str, say: Callable[[str], None]) -> Path:
    kept = cache_folder() / f"liger_kernel-{version}.tar.gz"
    digest = kept.with_suffix(".sha256")
    if kept.is_file() and digest.is_file() and digest.read_text().strip() == _sha256(kept):
        return kept
    say(f"downloading the sdist of liger-kernel {version}")
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        fetched = _download(version, Path(folder))
        _replace_text(digest, _sha256(fetched))
        fetched.replace(kept)
    return kept


def _download(version: str, folder: Path) -> Path:
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", "liger-kernel",
        "--disable-pip-version-check", "--dest", str(folder), f"liger-kernel=={version}",
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS)
    except subprocess.TimeoutExpired:
        raise CannotInit(f"pip did not finish within {DOWNLOAD_SECONDS} s. Try again, or check the network.") from None
    found = list(folder.glob("*.tar.gz"))
    if done.returncode != 0 or not found:
        if "No module named pip" in done.stderr:
            raise CannotInit(f"{sys.executable} has no pip, which fetches the sdist: run it with `-m ensurepip` first.")
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        why = errors[-1].removeprefix("ERROR: ") if errors else f"pip ended with exit code {done.returncode}"
        raise CannotInit(
            f"liger-kernel {version} cannot be downloaded: {why}. Check the version and the network, "
            f"or put its sdist on a package index that pip is set up for."
        )
    return found[0]


def _unpack(archive: Path, folder: Path) -> Path:
    try:
        with tarfile.open(archive) as tar:
            if hasattr(tarfile, "data_filter"):
                tar.extractall(folder, filter="data")
            else:  # early patch releases of 3.10 and 3.11
                for member in tar.getmembers():
                    inside = (folder / member.name).resolve().is_relative_to(folder.resolve())
                    if not inside or not (member.isfile() or member.isdir()):
                        raise CannotInit(f"{archive.name} holds {member.name}, which does not stay in its folder.")
                tar.extractall(folder)
    except (tarfile.TarError, OSError, EOFError) as problem:
        raise CannotInit(f"{archive} cannot be unpacked: {problem}. Remove it and try again.") from None
    tops = [path for path in folder.iterdir() if path.is_dir()]
    if len(tops) != 1 or not is_workspace(tops[0]):
        raise CannotInit(f"{archive.name} is not a checkout in Liger's layout.")
    return tops[0]


def _commit(root: Path, version: str) -> None:
    """One commit, so that `git diff` shows what is added. Best effort: a workspace works without git."""
    git = shutil.which("git")
    if git is None:
        return
    identity = ["-c", "user.name=tigon", "-c", "user.email=tigon@localhost", "-c", "commit.gpgsign=false"]
    # No hooks of the user's own, and the bytes of the sdist whatever they have set for line ends.
    plain = ["-c", f"core.hooksPath={os.devnull}", "-c", "core.autocrlf=false"]
    # Where Tigon runs in a git hook, GIT_DIR and its kin name another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    for command in (
        ["init", "--quiet", "--template="],
        ["add", "--all"],
        [*identity, "commit", "--quiet", "--no-verify", "--message", f"liger-kernel {version}, as released"],
    ):
        done = subprocess.run([git, *plain, *command], cwd=root, env=environment, capture_output=True)
        if done.returncode != 0:
            shutil.rmtree(root / ".git", ignore_errors=True)
            return


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _replace_text(path: Path, text: str) -> None:
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(text)
    fresh.replace(path)
