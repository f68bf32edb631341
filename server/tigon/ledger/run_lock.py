"""One run of the gates for a task at a time, whichever server of this machine asks.

The lock is the operating system's, on a file under `.tigon`: it goes when its process ends, however it ends,
so a server that was killed keeps nobody waiting. The file stays, since to remove it would let two hold two of it.
"""

from __future__ import annotations

import fcntl
import os
from datetime import datetime, timezone
from pathlib import Path


class Held(Exception):
    """Another server runs the gates of the task; the text says which process, and since when."""


class RunLock:
    """Taken when it is made, until `release`."""

    def __init__(self, folder: Path, task_id: str) -> None:
        """folder: `.tigon` of a workspace.

        Raises:
            Held: somebody has it.
        """
        path = folder / "running" / task_id
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            said = os.read(self._file, 200).decode(errors="replace")
            os.close(self._file)
            raise Held(said or "another process") from None
        except OSError:
            pass  # a file system without locks: the ledger still counts two runs at once as one attempt
        os.ftruncate(self._file, 0)
        since = datetime.now(timezone.utc).strftime("%H:%M:%S UTC")
        os.write(self._file, f"process {os.getpid()}, since {since}".encode())

    def release(self) -> None:
        """Let go; once more has no effect."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
