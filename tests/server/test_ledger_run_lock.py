"""The lock on a task's run: one holder, whoever asks; free again when the holder lets go or dies."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tigon.ledger.run_lock import Held, RunLock

TAKES_AND_DIES = """
import os, pathlib, sys
from tigon.ledger.run_lock import RunLock

lock = RunLock(pathlib.Path(sys.argv[1]), "mish-0001")
os._exit(9)
"""


def test_one_holds_it_and_says_who(tmp_path: Path) -> None:
    lock = RunLock(tmp_path, "mish-0001")
    with pytest.raises(Held, match=rf"^process {os.getpid()}, since \d\d:\d\d:\d\d UTC$"):
        RunLock(tmp_path, "mish-0001")
    RunLock(tmp_path, "mish-0002").release()
    lock.release()
    lock.release()
    RunLock(tmp_path, "mish-0001").release()


def test_a_process_that_dies_lets_go(tmp_path: Path) -> None:
    assert subprocess.run([sys.executable, "-c", TAKES_AND_DIES, str(tmp_path)], timeout=60).returncode == 9
    RunLock(tmp_path, "mish-0001").release()
