"""A job's process and everything it started: who they are, what memory they hold, and their end.

A job's process leads its own group and adopts whatever is orphaned below it (`child.isolate`), so all
of it is found from the one pid, also what has left the group. That is Linux; elsewhere only the group
is known, and memory is not.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys

_ROUNDS = 50
"""Looks for new processes while killing; something that forks faster than this is killed by the parent, as
an orphan, once its job's own process is gone."""

_PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / 2**20 if hasattr(os, "sysconf") else 4096 / 2**20


def children(pid: int) -> set[int]:
    """Processes whose parent is `pid`, those that have ended and are not reaped included."""
    if sys.platform != "linux":
        return set()
    found: set[int] = set()
    try:
        # One list for each thread that may have forked.
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found.update(map(int, file.read().split()))
    except (FileNotFoundError, ProcessLookupError):
        # The process or a thread of it is gone, or the kernel was built without these lists.
        return _children_by_scan(pid) if os.path.exists(f"/proc/{pid}") else found
    return found


def _children_by_scan(pid: int) -> set[int]:
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := _stat(int(name))) is not None and int(fields[1]) == pid:
            found.add(int(name))
    return found


def descendants(pid: int) -> set[int]:
    """All processes below `pid`."""
    found: set[int] = set()
    todo = [pid]
    while todo:
        new = children(todo.pop()) - found
        found |= new
        todo += new
    return found


def memory_mib(pid: int) -> float:
    """Resident memory of a process and all below it, MiB; pages they share count in each of them."""
    if sys.platform != "linux":
        return 0.0
    return sum(_resident_mib(one) for one in (pid, *descendants(pid)))


def _resident_mib(pid: int) -> float:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE_MIB
    except (OSError, IndexError):
        return 0.0


def kill_tree(leader: int) -> None:
    """Kill a job's process and everything below it; the caller reaps `leader`."""
    # Stopped, it makes no new ones while the old ones are looked for.
    _signal(leader, signal.SIGSTOP)
    for _ in range(_ROUNDS):
        alive = [pid for pid in descendants(leader) if _is_alive(pid)]
        if not alive:
            break
        for pid in alive:
            _signal(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    _signal(leader, signal.SIGKILL)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _is_alive(pid: int) -> bool:
    fields = _stat(pid)
    return fields is not None and fields[0] not in (b"Z", b"X")


def _stat(pid: int) -> list[bytes] | None:
    """Fields of /proc/PID/stat from the state on; the name before it may hold anything."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return None
