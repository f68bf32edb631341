"""What code generation refuses."""

from __future__ import annotations


class Unsupported(Exception):
    """This graph cannot be generated; the text is one sentence that names the op."""
