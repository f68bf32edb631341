"""A plan is written whole or not at all, and never over what a human has edited."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tigon.workspace import write
from tigon.workspace.snapshot import compare, take_snapshot
from tigon.workspace.write import CannotWrite, PlannedFile, apply_plan, digest


def actions(root: Path, plan: list[PlannedFile], scaffolded: dict[str, str] | None = None) -> list[str]:
    return [action for _, action in apply_plan(root, plan, scaffolded)]


def test_files_are_created_and_edited_and_twice_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "there.py").write_text("old\n")
    plan = [PlannedFile("new/deep.py", "a\n"), PlannedFile("there.py", "old\nmore\n", edit=True)]
    assert actions(tmp_path, plan) == ["created", "edited"]
    assert (tmp_path / "new/deep.py").read_text() == "a\n"
    before = take_snapshot(tmp_path)
    assert actions(tmp_path, plan, {"new/deep.py": digest("a\n")}) == ["unchanged", "unchanged"]
    assert take_snapshot(tmp_path) == before


def test_what_a_human_edited_is_kept_and_what_was_scaffolded_is_renewed(tmp_path: Path) -> None:
    scaffolded = {"a.py": digest("first\n"), "b.py": digest("first\n")}
    (tmp_path / "a.py").write_text("first\n")
    (tmp_path / "b.py").write_text("mine\n")
    plan = [PlannedFile("a.py", "second\n"), PlannedFile("b.py", "second\n")]
    assert actions(tmp_path, plan, scaffolded) == ["created", "kept"]
    assert (tmp_path / "a.py").read_text() == "second\n"
    assert (tmp_path / "b.py").read_text() == "mine\n"


def test_a_file_of_somebody_elses_stops_everything_before_the_first_write(tmp_path: Path) -> None:
    (tmp_path / "b.py").write_text("mine\n")
    with pytest.raises(CannotWrite, match=r"b\.py is there and was not written by this task"):
        apply_plan(tmp_path, [PlannedFile("a.py", "x\n"), PlannedFile("b.py", "x\n")])
    assert not (tmp_path / "a.py").exists()
    assert actions(tmp_path, [PlannedFile("b.py", "x\n", optional=True)]) == ["kept"]


def test_a_failed_write_puts_everything_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "there.py").write_text("old\n")
    before = take_snapshot(tmp_path)
    real = os.replace

    def fails_at_the_third(source: str, target: Path) -> None:
        if Path(target).name == "last.py":
            raise OSError(28, "No space left on device", str(target))
        real(source, target)

    monkeypatch.setattr(write.os, "replace", fails_at_the_third)
    plan = [
        PlannedFile("new.py", "n\n"),
        PlannedFile("there.py", "changed\n", edit=True),
        PlannedFile("last.py", "l\n"),
    ]
    with pytest.raises(CannotWrite, match=r"last\.py cannot be written: No space left on device"):
        apply_plan(tmp_path, plan)
    assert take_snapshot(tmp_path) == before
    assert not list(tmp_path.glob(".*"))


def test_a_link_out_of_the_workspace_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    root = tmp_path / "root"
    root.mkdir()
    (root / "src").symlink_to(outside)
    for path in ("src/x.py", "../x.py"):
        with pytest.raises(CannotWrite, match="out of the workspace"):
            apply_plan(root, [PlannedFile(path, "x\n")])
    assert not list(outside.iterdir())


def test_the_mode_of_an_edited_file_stays(tmp_path: Path) -> None:
    file = tmp_path / "run.py"
    file.write_text("old\n")
    file.chmod(0o755)
    apply_plan(tmp_path, [PlannedFile("run.py", "new\n", edit=True)])
    assert stat.S_IMODE(file.stat().st_mode) == 0o755


def test_a_snapshot_sees_what_changed_and_not_what_does_not_matter(tmp_path: Path) -> None:
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).write_text(name)
    before = take_snapshot(tmp_path)
    (tmp_path / "a.py").write_text("changed")
    (tmp_path / "b.py").unlink()
    (tmp_path / "d.py").write_text("new")
    for noise in (".git/index", ".tigon/ledger.db", "__pycache__/a.pyc", ".pytest_cache/x", "x.egg-info/PKG-INFO"):
        path = tmp_path / noise
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("noise")
    changes = compare(before, take_snapshot(tmp_path))
    assert (changes.added, changes.changed, changes.removed) == (("d.py",), ("a.py",), ("b.py",))
