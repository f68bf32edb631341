"""The ledger's schema, step by step. A step that has shipped is never changed; a new one is added.

A new kind of event needs a step as well, even an empty one: an older Tigon could not fold it, and must refuse.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress

STEPS: tuple[str, ...] = (
    # 1: events in the order they happened, and texts by their hash. Neither is ever changed;
    # the third trigger is for INSERT OR REPLACE, which deletes without firing the second.
    """
    CREATE TABLE events (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        task_id TEXT NOT NULL,
        seq INTEGER NOT NULL,
        time TEXT NOT NULL,
        kind TEXT NOT NULL,
        payload TEXT NOT NULL,
        UNIQUE (task_id, seq)
    );
    CREATE TABLE texts (hash TEXT PRIMARY KEY, text TEXT NOT NULL);
    CREATE TRIGGER events_stay BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
    CREATE TRIGGER events_remain BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
    CREATE TRIGGER events_are_new BEFORE INSERT ON events
        WHEN EXISTS (SELECT 1 FROM events WHERE id = NEW.id OR (task_id = NEW.task_id AND seq = NEW.seq))
        BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
    CREATE TRIGGER texts_stay BEFORE UPDATE ON texts BEGIN SELECT RAISE(ABORT, 'texts are append-only'); END;
    CREATE TRIGGER texts_remain BEFORE DELETE ON texts BEGIN SELECT RAISE(ABORT, 'texts are append-only'); END;
    """,
)

VERSION = len(STEPS)


class LedgerTooNew(Exception):
    """A newer Tigon wrote the ledger; this one must not touch it."""


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a ledger to `VERSION`; two processes may do it at once.

    Raises:
        LedgerTooNew: naming both versions.
    """
    if _version(connection) == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)  # another process may have been faster
        if version > VERSION:
            raise LedgerTooNew(
                f"this workspace's ledger has schema {version}, and this Tigon knows {VERSION}. "
                "Upgrade Tigon (pip install --upgrade tigon)."
            )
        for step in STEPS[version:]:
            for statement in _statements(step):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _statements(script: str) -> list[str]:
    """`executescript` would commit half-way; so one statement at a time, inside the transaction."""
    statements, current = [], ""
    for line in script.strip().splitlines():
        current += line + "\n"
        if sqlite3.complete_statement(current):
            statements.append(current)
            current = ""
    return statements
