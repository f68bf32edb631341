"""The ledger: what happened to each task, in order, append-only.

Invariants:
- An event and the texts it names are written in one transaction: after a kill there is all or nothing.
- A writer says which event it has seen last. If another process wrote since, it gets `Conflict`,
  so two servers on one workspace cannot both move a task.
- Nothing is updated, replaced or deleted; triggers forbid it.
- A text is kept under its hash, and checked against it when it is read.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tigon.ledger.migrations import migrate

BUSY_SECONDS = 15.0
"""How long a writer waits for another's transaction, which takes milliseconds."""

GITIGNORE = "*\n"


class Conflict(Exception):
    """Another process wrote to the task since it was read; read it again."""


@dataclass(frozen=True)
class Event:
    """seq counts from 1 in each task; time is UTC, ISO 8601, to the millisecond."""

    task_id: str
    seq: int
    time: str
    kind: str
    payload: dict[str, Any]


def text_hash(text: str) -> str:
    """The key a text is kept under: SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()


class Damaged(Exception):
    """A kept text is not what its hash says: somebody wrote in the database."""


class Ledger:
    """The ledger in a folder (`.tigon`), made where it is not there."""

    def __init__(self, folder: Path) -> None:
        """folder: `.tigon` of a workspace.

        Raises:
            LedgerTooNew: a newer Tigon wrote it; nothing was changed.
        """
        folder.mkdir(parents=True, exist_ok=True)
        _ignore(folder)
        self._connection = sqlite3.connect(folder / "ledger.db", timeout=BUSY_SECONDS, isolation_level=None)
        try:
            migrate(self._connection)
            _use_write_ahead_log(self._connection)
            self._connection.execute("PRAGMA synchronous = FULL")  # a decision must survive a power cut
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        self._connection.close()

    def append(
        self,
        task_id: str,
        kind: str,
        payload: Mapping[str, Any],
        *,
        seen: int,
        texts: Iterable[str] = (),
    ) -> Event:
        """Add an event after the one numbered `seen` (0 for a new task), and keep texts with it.

        Raises:
            Conflict: the task has gone on since.
        """
        event = Event(
            task_id, seen + 1, datetime.now(timezone.utc).isoformat(timespec="milliseconds"), kind, dict(payload)
        )
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            row = connection.execute("SELECT MAX(seq) FROM events WHERE task_id = ?", (task_id,)).fetchone()
            if (row[0] or 0) != seen:
                raise Conflict(f"task {task_id} has gone on to event {row[0]} since event {seen} was read.")
            for text in texts:
                connection.execute("INSERT OR IGNORE INTO texts VALUES (?, ?)", (text_hash(text), text))
            connection.execute(
                "INSERT INTO events (task_id, seq, time, kind, payload) VALUES (?, ?, ?, ?, ?)",
                (task_id, event.seq, event.time, kind, json.dumps(event.payload, sort_keys=True)),
            )
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        return event

    def events(self, task_id: str) -> list[Event]:
        """Of one task, in order."""
        return self._read(
            "SELECT task_id, seq, time, kind, payload FROM events WHERE task_id = ? ORDER BY seq", (task_id,)
        )

    def all_events(self) -> list[Event]:
        """Of every task, in the order they happened."""
        return self._read("SELECT task_id, seq, time, kind, payload FROM events ORDER BY id", ())

    def text(self, key: str) -> str:
        """A kept text.

        Raises:
            KeyError: nothing is kept under that hash.
            Damaged: what is kept has another hash.
        """
        row = self._connection.execute("SELECT text FROM texts WHERE hash = ?", (key,)).fetchone()
        if row is None:
            raise KeyError(f"the ledger keeps no text {key}")
        text = str(row[0])
        if text_hash(text) != key:
            raise Damaged(f"the ledger's text {key[:8]} was changed outside Tigon; open a new task.")
        return text

    def _read(self, query: str, arguments: Sequence[str]) -> list[Event]:
        rows = self._connection.execute(query, arguments).fetchall()
        return [Event(task, seq, time, kind, json.loads(payload)) for task, seq, time, kind, payload in rows]


def _ignore(folder: Path) -> None:
    """Keep `.tigon` out of git; renamed into place, so that a kill leaves no empty file behind."""
    path = folder / ".gitignore"
    if path.exists():
        return
    beside = folder / f".gitignore.{os.getpid()}"
    beside.write_text(GITIGNORE, encoding="utf-8")
    os.replace(beside, path)


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Readers and a writer at once. SQLite does not wait for a lock here, so the wait is ours."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)  # another process is changing the mode, which it does once in a ledger's life
