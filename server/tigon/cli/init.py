"""`tigon init`: make a workspace and say how to go on."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from tigon.workspace.init import create_workspace


def init_workspace(path: Path, version: str | None) -> None:
    """A workspace in `path`.

    Raises:
        CannotInit: the folder is in use, or the sdist could not be had.
    """
    console = Console(highlight=False)
    with console.status("making the workspace") as status:
        made = create_workspace(path, version, status.update)
    console.print(f"A workspace of liger-kernel {made.liger_version} is in {made.root}.", soft_wrap=True)
    console.print(f"Next: cd {made.root}, and add Tigon to your assistant there, for example:", soft_wrap=True)
    console.print("    claude mcp add --scope project tigon -- tigon serve")
