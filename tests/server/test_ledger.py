"""The ledger alone: order, conflicts, append-only, versions."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tigon.ledger import migrations
from tigon.ledger.ledger import Conflict, Damaged, Ledger, text_hash
from tigon.ledger.migrations import LedgerTooNew


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger(tmp_path / ".tigon")
    yield made
    made.close()


def test_events_come_back_in_order_with_their_payload(ledger: Ledger) -> None:
    ledger.append("a", "opened", {"n": 1}, seen=0)
    ledger.append("b", "opened", {"n": 2}, seen=0)
    ledger.append("a", "moved", {"text": "größer", "list": [1, None, True]}, seen=1)

    assert [(e.seq, e.kind, e.payload) for e in ledger.events("a")] == [
        (1, "opened", {"n": 1}),
        (2, "moved", {"text": "größer", "list": [1, None, True]}),
    ]
    assert [(e.task_id, e.seq) for e in ledger.all_events()] == [("a", 1), ("b", 1), ("a", 2)]
    assert ledger.events("c") == []


def test_a_writer_that_has_not_seen_the_last_event_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    other = Ledger(tmp_path / ".tigon")
    ledger.append("a", "opened", {}, seen=0)
    other.append("a", "moved", {}, seen=1)

    with pytest.raises(Conflict, match="event 2 since event 1"):
        ledger.append("a", "moved", {}, seen=1, texts=["not kept"])

    assert [e.seq for e in ledger.events("a")] == [1, 2]
    with pytest.raises(KeyError):
        ledger.text(text_hash("not kept"))
    ledger.append("a", "moved", {}, seen=2)  # the refused transaction left no lock behind
    other.close()


def test_texts_are_kept_once_under_their_hash(ledger: Ledger, tmp_path: Path) -> None:
    ledger.append("a", "opened", {}, seen=0, texts=["ref\n", "facts"])
    ledger.append("a", "moved", {}, seen=1, texts=["ref\n"])

    assert ledger.text(text_hash("ref\n")) == "ref\n"
    raw = sqlite3.connect(tmp_path / ".tigon/ledger.db")
    assert raw.execute("SELECT COUNT(*) FROM texts").fetchone() == (2,)
    raw.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET payload = '{}'",
        "DELETE FROM events",
        "INSERT OR REPLACE INTO events VALUES (1, 'a', 1, 't', 'forged', '{}')",
        "INSERT OR REPLACE INTO events (task_id, seq, time, kind, payload) VALUES ('a', 1, 't', 'forged', '{}')",
        "UPDATE texts SET text = 'forged'",
        "DELETE FROM texts",
    ],
)
def test_the_database_itself_refuses_to_change_what_happened(ledger: Ledger, tmp_path: Path, statement: str) -> None:
    ledger.append("a", "opened", {"n": 1}, seen=0, texts=["kept"])
    raw = sqlite3.connect(tmp_path / ".tigon/ledger.db")

    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw.execute(statement)

    raw.close()
    assert [(e.kind, e.payload) for e in ledger.events("a")] == [("opened", {"n": 1})]


def test_a_text_that_was_changed_behind_the_triggers_is_noticed(ledger: Ledger, tmp_path: Path) -> None:
    ledger.append("a", "opened", {}, seen=0, texts=["right"])
    raw = sqlite3.connect(tmp_path / ".tigon/ledger.db")
    with raw:
        raw.execute("DROP TRIGGER texts_stay")
        raw.execute("UPDATE texts SET text = 'wrong'")
    raw.close()

    with pytest.raises(Damaged, match=text_hash("right")[:8]):
        ledger.text(text_hash("right"))


def test_a_ledger_of_a_newer_tigon_is_refused_and_left_alone(tmp_path: Path) -> None:
    Ledger(tmp_path / ".tigon").close()
    raw = sqlite3.connect(tmp_path / ".tigon/ledger.db")
    raw.execute("PRAGMA user_version = 99")
    raw.close()

    with pytest.raises(LedgerTooNew, match=r"schema 99, and this Tigon knows \d+\. Upgrade"):
        Ledger(tmp_path / ".tigon")

    raw = sqlite3.connect(tmp_path / ".tigon/ledger.db")
    assert raw.execute("PRAGMA user_version").fetchone() == (99,)
    raw.close()


def test_an_older_ledger_gets_the_steps_it_lacks_and_keeps_its_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = Ledger(tmp_path / ".tigon")
    old.append("a", "opened", {}, seen=0)
    old.close()
    step = "CREATE TABLE notes (text TEXT);\nCREATE INDEX notes_text ON notes (text);\n"
    monkeypatch.setattr(migrations, "STEPS", (*migrations.STEPS, step))
    monkeypatch.setattr(migrations, "VERSION", migrations.VERSION + 1)

    new = Ledger(tmp_path / ".tigon")

    assert [e.kind for e in new.events("a")] == ["opened"]
    new.close()
    raw = sqlite3.connect(tmp_path / ".tigon/ledger.db")
    assert raw.execute("SELECT COUNT(*) FROM notes").fetchone() == (0,)
    assert raw.execute("PRAGMA user_version").fetchone() == (migrations.VERSION,)
    raw.close()


def test_a_step_that_fails_leaves_the_ledger_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Ledger(tmp_path / ".tigon").close()
    before = migrations.VERSION
    step = "CREATE TABLE notes (text TEXT);\nCREATE TABLE events (id INTEGER);\n"  # the second exists
    monkeypatch.setattr(migrations, "STEPS", (*migrations.STEPS, step))
    monkeypatch.setattr(migrations, "VERSION", migrations.VERSION + 1)

    with pytest.raises(sqlite3.OperationalError, match="already exists"):
        Ledger(tmp_path / ".tigon")

    raw = sqlite3.connect(tmp_path / ".tigon/ledger.db")
    assert raw.execute("PRAGMA user_version").fetchone() == (before,)
    assert raw.execute("SELECT name FROM sqlite_master WHERE name = 'notes'").fetchone() is None
    raw.close()


def test_git_ignores_the_folder(ledger: Ledger, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    status = subprocess.run(["git", "-C", str(tmp_path), "status", "--porcelain"], capture_output=True, text=True)
    assert status.stdout == ""


def test_many_processes_may_make_the_same_ledger_at_once(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from tigon.ledger.ledger import Ledger; Ledger(Path(sys.argv[1]))"
    makers = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / ".tigon")], stderr=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    for maker in makers:
        _, errors = maker.communicate(timeout=60)
        assert maker.returncode == 0, errors
    raw = sqlite3.connect(tmp_path / ".tigon/ledger.db")
    assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    raw.close()
