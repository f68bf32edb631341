"""Where an interpreter that has not installed `tigon_tools` finds it, and nothing else with it."""

from __future__ import annotations

import shutil
import sys
import tempfile
import weakref
from pathlib import Path

import tigon_tools

PACKAGE = Path(tigon_tools.__file__).resolve().parent


class ToolsPath:
    """A folder for PYTHONPATH that holds the package `tigon_tools` and no other.

    The source tree has one. In an installed Tigon the package's neighbours are the server's own
    dependencies, built for the server's Python: another interpreter must not see them, so it gets
    a folder with a link, which goes when this object does.
    """

    def __init__(self, python: str) -> None:
        """python: the interpreter that is to import `tigon_tools`."""
        neighbours = {path.name for path in PACKAGE.parent.iterdir()} - {PACKAGE.name, "__pycache__"}
        self.folder: Path | None = None
        if not neighbours:
            self.folder = PACKAGE.parent
        elif python != sys.executable:
            self.folder = Path(tempfile.mkdtemp(prefix="tigon-tools-"))
            (self.folder / PACKAGE.name).symlink_to(PACKAGE, target_is_directory=True)
            weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
