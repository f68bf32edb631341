"""Take what looks like a secret out of text that a job printed, before it goes into a message."""

from __future__ import annotations

import re

_NAMED = re.compile(
    r"(?i)\b([\w.-]*(?:token|secret|passw(?:or)?d|api[_-]?key|access[_-]?key|private[_-]?key|credential)[\w.-]*"
    r"['\"]?\s*[=:]\s*)['\"]?(?!\d{1,9}\b)[^\s'\",;]+"
)
"""`HF_TOKEN=…`, `"api_key": "…"`, `--password: …`: the name stays, the value goes. Not `max_tokens=128`."""

_SHAPED = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{8,}|sk-[A-Za-z0-9_-]{8,}|gh[pousr]_[A-Za-z0-9]{8,}|github_pat_\w{8,}|glpat-[\w-]{8,}"
    r"|xox[abprs]-[\w-]{8,}|AKIA[A-Z0-9]{12,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
)
"""Tokens that say themselves what they are: Hugging Face, OpenAI and Anthropic, GitHub, GitLab, Slack, AWS, JWT."""

_BEARER = re.compile(r"(?i)\b((?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}")
_IN_URL = re.compile(r"(://)[^/\s:@]+:[^/\s@]+@")


def redact(text: str) -> str:
    """`text` with values that look secret replaced by three dots."""
    for pattern in (_IN_URL, _BEARER, _NAMED):
        text = pattern.sub(r"\1…", text)
    return _SHAPED.sub("…", text)
