"""What happened, append-only: SQLite in `.tigon/ledger.db`."""
