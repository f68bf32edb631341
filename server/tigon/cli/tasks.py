"""`tigon tasks` and `tigon report`."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table

from tigon.cli.workspace import open_workflow


def list_tasks(workspace: Path | None) -> None:
    summaries = open_workflow(workspace).task_status(None).tasks or []
    console = Console()
    if not summaries:
        console.print("No tasks yet. Ask your assistant for a kernel, or watch `tigon demo`.")
        return
    table = Table("task", "operation", "state", "next", "updated", box=None, pad_edge=False)
    for task in summaries:
        table.add_row(task.task_id, task.operation_name, task.state, task.next, task.updated)
    console.print(table)


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
