"""A call that is not allowed: which gate, why, and what to do next. Nothing has changed on disk."""

from __future__ import annotations


class Refusal(Exception):
    """gate: a stable word ("profile_review", "integrity", "input", "workspace", "job", …)."""

    def __init__(self, gate: str, reason: str, next_step: str) -> None:
        super().__init__(f"gate {gate}: {reason} Next: {next_step}")
        self.gate = gate
        self.reason = reason
        self.next_step = next_step
