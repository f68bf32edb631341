"""Real processes: all that is below a job's own is found, weighed and killed."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tigon_tools.process_tree import descendants, kill_tree, memory_mib

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

WAIT = 60
HELD_MIB = 200

LEADER = f"""\
import os, subprocess, sys
from tigon_tools.child import isolate
isolate(os.getppid())
CODE = 'held = b"x" * ({HELD_MIB} * 2**20); print("holding", flush=True); import time; time.sleep(600)'
holder = subprocess.Popen([sys.executable, "-c", CODE], stdout=subprocess.PIPE)
holder.stdout.readline()
middle = subprocess.Popen(
    [sys.executable, "-c", "import subprocess; print(subprocess.Popen(['sleep', '600'], start_new_session=True).pid)"],
    stdout=subprocess.PIPE,
)
orphan = middle.stdout.readline().decode().strip()
middle.wait()
print(holder.pid, orphan, flush=True)
holder.wait()
"""


@pytest.fixture
def tree() -> Iterator[tuple[int, list[int]]]:
    """A leader, and the pids below it: a child that holds memory, and an orphan that left the group."""
    leader = subprocess.Popen([sys.executable, "-c", LEADER], stdout=subprocess.PIPE)
    assert leader.stdout is not None
    below = [int(pid) for pid in leader.stdout.readline().split()]
    yield leader.pid, below
    kill_tree(leader.pid)
    leader.wait()
    leader.stdout.close()


def test_orphans_stay_below_the_leader(tree: tuple[int, list[int]]) -> None:
    leader, below = tree
    assert len(below) == 2
    assert descendants(leader) == set(below)


def test_memory_counts_what_is_below(tree: tuple[int, list[int]]) -> None:
    leader, _ = tree
    assert HELD_MIB < memory_mib(leader) < HELD_MIB + 150


def test_all_of_it_is_killed(tree: tuple[int, list[int]]) -> None:
    leader, below = tree
    watched = [os.pidfd_open(pid) for pid in (leader, *below)]
    kill_tree(leader)
    for process in watched:
        assert select.select([process], [], [], WAIT)[0], "a process is still alive"
        os.close(process)


def test_what_has_ended_weighs_nothing_and_can_be_killed_again() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert memory_mib(ended.pid) == 0
    assert descendants(ended.pid) == set()
