"""What is put before a human: one thing, with the hash that the answer is for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ReviewKind = Literal["profile", "reset", "final"]


@dataclass(frozen=True)
class ReviewQuestion:
    """kind: a profile, the reset of a blocked task, or the final diff and report.

    hash: identifies exactly what is shown. title: one line. text: Markdown, whole.
    """

    kind: ReviewKind
    hash: str
    title: str
    text: str
