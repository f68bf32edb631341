"""`tigon tasks` and `tigon report`."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table

from tigon.cli.workspace import open_workflow

NARROWEST = 40
"""Columns for the sentence that says what comes next: shorter lines of it are hard to read."""


def list_tasks(workspace: Path | None) -> None:
    summaries = open_workflow(workspace).task_status(None).tasks or []
    console = Console()
    if not summaries:
        console.print("No tasks yet. Ask your assistant for a kernel, or watch `tigon demo`.")
        return
    rows = [(t.task_id, t.operation_name, t.state, t.next, t.updated) for t in summaries]
    if not sys.stdout.isatty():
        for row in rows:
            print("\t".join(row))
        return
    table = Table(box=None, pad_edge=False)
    for position, heading in enumerate(("task", "operation", "state", "next", "updated")):
        # An id is typed again, so it is shown whole however narrow the terminal is; the sentence folds.
        width = None if heading == "next" else max(len(heading), *(len(row[position]) for row in rows))
        table.add_column(heading, width=width, no_wrap=width is not None)
    for row in rows:
        table.add_row(*row)
    needed = NARROWEST + sum(column.width or 0 for column in table.columns) + len(table.columns)
    Console(width=max(console.width, needed)).print(table)


def show_report(task_id: str, workspace: Path | None) -> None:
    """The report as Markdown where it is piped, rendered on a terminal.

    Raises:
        Refusal: there is no such task, or it was never verified.
    """
    text = open_workflow(workspace).report_text(task_id)
    if sys.stdout.isatty():
        Console().print(Markdown(text))
    else:
        print(text, end="")
