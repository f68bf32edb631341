"""Secrets go, and what a reader needs of an error stays."""

from __future__ import annotations

import pytest

from tigon_tools.redaction import redact


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("HF_TOKEN=hf_abcdefghijkl", "hf_abcdefghijkl"),
        ('{"api_key": "plain-old-value", "x": 1}', "plain-old-value"),
        ("--password: hunter2", "hunter2"),
        ("AWS_SECRET_ACCESS_KEY = wJalrXUtnFEMI", "wJalrXUtnFEMI"),
        ("Authorization: Bearer abcdef123456", "abcdef123456"),
        ("cannot clone https://me:s3cr3t@example.org/x.git", "s3cr3t"),
        ("got ghp_0123456789abcdef from the store", "ghp_0123456789abcdef"),
        ("jwt eyJhbGciOiJIUzI1.eyJzdWIiOiIx.c2ln", "eyJhbGciOiJIUzI1"),
    ],
)
def test_a_secret_goes(text: str, secret: str) -> None:
    assert secret not in redact(text)
    assert "…" in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: The size of tensor a (3) must match the size of tensor b (4)",
        "KeyError: 'surprise'",
        "error: token_type_ids has shape [2, 8]",
        "tokens per second: 1200",
        "batch of max_tokens=128, num_tokens: 4096",
        "loading https://example.org:8080/model",
        "SyntaxError: invalid syntax (src/liger_kernel/ops/x.py:3)",
    ],
)
def test_an_error_stays(text: str) -> None:
    assert redact(text) == text
