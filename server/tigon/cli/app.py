"""The commands of `tigon`, and how each of them fails: one sentence, the next step, exit status 1 or 2."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tigon import __version__
from tigon.workflow.refusal import Refusal
from tigon.workspace.init import CannotInit
from tigon.workspace.layout import NotAWorkspace

FAILED, CALLED_WRONGLY = 1, 2

app = typer.Typer(
    name="tigon",
    help="Triton kernels for Liger-Kernel: traced, generated, verified, and approved by a human.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

WorkspaceOption = Annotated[
    Path | None,
    typer.Option("--workspace", metavar="PATH", help="The Liger checkout (default: this folder)."),
]


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns the exit status."""
    try:
        status = app(args=list(arguments) or ["--help"], standalone_mode=False, prog_name="tigon")
        return status if isinstance(status, int) else 0
    except Refusal as refusal:
        return _fail(f"{refusal.reason} Next: {refusal.next_step}", FAILED)
    except (CannotInit, NotAWorkspace) as problem:  # their texts end with the next step
        return _fail(str(problem), FAILED)
    except (typer.Abort, KeyboardInterrupt):
        return _fail("stopped.", FAILED)
    except BrokenPipeError:  # `tigon tasks | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as problem:
        # typer brings its own copy of click or uses click, by version; both know how to say what was wrong.
        sentence = getattr(problem, "format_message", None)
        if sentence is not None:
            text = str(sentence()).rstrip(".") or "no command"
            return _fail(f"{text}. Next: see `tigon --help`.", CALLED_WRONGLY)
        if os.environ.get("TIGON_DEBUG"):
            traceback.print_exc()
        name = type(problem).__name__
        return _fail(f"{name}: {problem}. Next: set TIGON_DEBUG=1 for the details, and report it.", FAILED)


def _fail(sentence: str, status: int) -> int:
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"tigon: {sentence}", markup=False)
    return status


def _version(wanted: bool) -> None:
    if wanted:
        print(f"tigon {__version__}")
        raise typer.Exit()


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """What all commands share."""


@app.command()
def serve(
    workspace: WorkspaceOption = None,
    http: Annotated[
        str | None, typer.Option("--http", metavar="HOST:PORT", help="Streamable HTTP in place of stdio.")
    ] = None,
) -> int:
    """The MCP server, over stdio by default."""
    # `tigon.entry` takes this command before it gets here; this is for its line in the help.
    from tigon.protocol import start

    options = [] if workspace is None else ["--workspace", str(workspace)]
    return start.serve([*options, *([] if http is None else ["--http", http])])


@app.command()
def init(
    path: Annotated[Path, typer.Argument(help="The folder to make; it must not exist or be empty.")],
    liger: Annotated[str | None, typer.Option("--liger", metavar="VERSION", help="Of liger-kernel.")] = None,
) -> None:
    """A Liger workspace from the liger-kernel sdist."""
    from tigon.cli.init import init_workspace

    init_workspace(path, liger)


@app.command()
def demo(
    workspace: Annotated[
        Path | None,
        typer.Option("--workspace", metavar="PATH", help="Where to make the workspace; it is kept."),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the workspace that the demo makes.")] = False,
) -> int:
    """The whole loop, twice: a scripted assistant, and the reviews answered as a human would."""
    from tigon.cli.demo import run_demo

    return run_demo(workspace, keep)


@app.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    workspace: WorkspaceOption = None,
) -> int:
    """What this machine can do, what is missing, and how to get it."""
    from tigon.cli.doctor import run_doctor

    return run_doctor(workspace or Path.cwd(), as_json)


@app.command()
def review(
    task: Annotated[str | None, typer.Argument(help="A task; left out, whatever waits.")] = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Read what waits for a human; approve it or send it back. In a terminal only."""
    from tigon.cli.review import run_review

    run_review(task, workspace)


@app.command()
def tasks(workspace: WorkspaceOption = None) -> None:
    """The tasks of a workspace."""
    from tigon.cli.tasks import list_tasks

    list_tasks(workspace)


@app.command()
def report(task: Annotated[str, typer.Argument(help="A task.")], workspace: WorkspaceOption = None) -> None:
    """A task's report."""
    from tigon.cli.tasks import show_report

    show_report(task, workspace)
