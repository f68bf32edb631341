"""The ledger among processes: killed at any moment, and two writers at once."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

from tigon.ledger.ledger import Ledger

WRITER = Path(__file__).parent / "ledger_writer.py"
KILLS = 12
"""Each at another moment; a process takes a quarter of a second to start."""


def start(folder: Path, task: str, count: int, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(WRITER), str(folder), task, str(count), name]
    writer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ready\n"
    return writer


def go(writer: subprocess.Popen[str]) -> None:
    assert writer.stdin is not None
    writer.stdin.write("go\n")
    writer.stdin.flush()


def test_what_was_committed_survives_a_kill_at_any_moment(tmp_path: Path) -> None:
    """After each kill: no gap, no event without its text, nothing lost that the writer had reported."""
    chance = random.Random(20)
    folder = tmp_path / ".tigon"
    reported = 0
    for attempt in range(KILLS):
        writer = start(folder, "task", 1_000_000, f"writer-{attempt}")
        go(writer)
        assert writer.stdout is not None
        for _ in range(chance.randrange(1, 12)):
            reported = int(writer.stdout.readline())
        spin = chance.randrange(200_000)  # somewhere in the next transaction; sleeping is too coarse
        for _ in range(spin):
            pass
        writer.send_signal(signal.SIGKILL)
        rest, _ = writer.communicate(timeout=30)
        reported = max([reported, *(int(line) for line in rest.splitlines() if line.strip().isdigit())])

        ledger = Ledger(folder)
        events = ledger.events("task")
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert len(events) >= reported
        for event in events[-3:]:
            assert ledger.text(event.payload["text"]).startswith(event.payload["by"])
        ledger.append("task", "written", events[-1].payload, seen=len(events))  # and it can still be written
        ledger.close()


def test_two_writers_never_both_follow_the_same_event(tmp_path: Path) -> None:
    folder = tmp_path / ".tigon"
    Ledger(folder).close()
    each = 60
    writers = [start(folder, "task", each, name) for name in ("left", "right")]
    for writer in writers:
        go(writer)
    said = [writer.communicate(timeout=120)[0].split() for writer in writers]

    sequences = [[int(word) for word in words[:-2]] for words in said]
    assert sorted(sequences[0] + sequences[1]) == list(range(1, 2 * each + 1))
    ledger = Ledger(folder)
    by = {event.seq: event.payload["by"] for event in ledger.events("task")}
    ledger.close()
    assert all(by[seq] == name for name, seqs in zip(("left", "right"), sequences, strict=True) for seq in seqs)
    order = [by[seq] for seq in sorted(by)]
    assert order not in (sorted(order), sorted(order, reverse=True)), "they never met, so this showed nothing"
