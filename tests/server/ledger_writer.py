"""A process that writes to a ledger until it is killed or has written enough; prints what was committed.
It begins when it gets a line.

Arguments: folder, task, how many events, own name. Each event names a text of 64 KiB, so that a kill can
fall between the two.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tigon.ledger.ledger import Conflict, Ledger, text_hash


def main(folder: str, task: str, count: str, name: str) -> None:
    ledger = Ledger(Path(folder))
    print("ready", flush=True)
    sys.stdin.readline()  # so that writers begin together
    written = conflicts = 0
    while written < int(count):
        seen = len(ledger.events(task))
        text = f"{name} {seen} " + "x" * 65_536
        try:
            event = ledger.append(task, "written", {"by": name, "text": text_hash(text)}, seen=seen, texts=[text])
        except Conflict:
            conflicts += 1
            continue
        written += 1
        print(event.seq, flush=True)
    print(f"conflicts {conflicts}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
