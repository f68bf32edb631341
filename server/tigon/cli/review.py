"""`tigon review`: the human's side of the gate, for clients that cannot ask and for humans who were away.

An assistant with a shell can start this command, so it insists on a terminal and reads from it, not from a
pipe. Whoever goes to the length of faking a terminal leaves the channel "terminal" in the record.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.markdown import Markdown
from rich.rule import Rule

from tigon.cli.workspace import open_workflow
from tigon.workflow.refusal import Refusal
from tigon.workflow.service import KernelWorkflow

CHANNEL = "terminal"
WAITING = ("awaiting_profile_review", "awaiting_final_review", "blocked")
SHORT_HASH = 8
"""Characters of the hash to type: enough to tell what was read from what is current, few enough to type."""


def run_review(task_id: str | None, workspace: Path | None) -> None:
    """Show what waits, one after the other, and take a decision on each.

    Raises:
        Refusal: not at a terminal; or the task named has nothing that waits.
    """
    workflow = open_workflow(workspace)
    with _terminal() as terminal:
        waiting = [task_id] if task_id is not None else _waiting(workflow)
        console = Console(file=sys.stdout)
        if not waiting:
            console.print("Nothing waits for a review.")
        for task in waiting:
            _review_one(workflow, task, console, terminal)


def _waiting(workflow: KernelWorkflow) -> list[str]:
    return [task.task_id for task in workflow.task_status(None).tasks or [] if task.state in WAITING]


def _terminal() -> TextIO:
    refusal = Refusal(
        "review",
        "A review needs a human at a terminal, and this is not one.",
        "run `tigon review` in a terminal window of your own, without pipes.",
    )
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise refusal
    try:
        return open("/dev/tty", encoding="utf-8")
    except OSError:
        raise refusal from None


def _review_one(workflow: KernelWorkflow, task_id: str, console: Console, terminal: TextIO) -> None:
    question = workflow.pending_review(task_id)
    short = question.hash[:SHORT_HASH]
    console.print(Rule(question.title))
    console.print(Markdown(question.text))
    console.print(Rule(f"task {task_id}, {question.kind}, {short}"))
    console.print(
        f"Type [bold]approve {short}[/] to approve it, [bold]send back[/] to return it with a comment, "
        "or press Enter to leave it for now."
    )
    said = _ask(terminal, "decision: ")
    if said == f"approve {short}":
        answer = workflow.record_decision(task_id, question.hash, "approved", CHANNEL, "")
    elif said == "send back":
        comment = _ask(terminal, "what should change: ")
        answer = workflow.record_decision(task_id, question.hash, "rejected", CHANNEL, comment)
    else:
        console.print(f"Left for now. It is still there: tigon review {task_id}")
        return
    console.print(f"{answer.decision}. {answer.next}", markup=False)


def _ask(terminal: TextIO, prompt: str) -> str:
    print(prompt, end="", flush=True)
    return " ".join(terminal.readline().split())
