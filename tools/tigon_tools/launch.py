"""The command line that starts a program of this package in a given interpreter.

`python -m` would put the current folder in front of the standard library, so that a `json.py` in a
workspace ran before anything of Tigon's. Here it comes last.
"""

from __future__ import annotations

_START = """\
import sys
if sys.version_info < (3, 10):
    sys.exit("Python 3.10 or newer is needed; this is " + sys.version.split()[0] + ".")
import os
if sys.path[:1] == [""]:
    sys.path.append(sys.path.pop(0) or os.getcwd())
import runpy
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""


def command(python: str, module: str, *arguments: str) -> list[str]:
    """`python -m module arguments`, with the current folder at the end of `sys.path`."""
    return [python, "-c", _START, module, *arguments]
