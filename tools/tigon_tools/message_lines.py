"""JSON lines out of a stream that arrives in pieces."""

from __future__ import annotations

LONGEST_LINE = 64 * 2**20
"""Bytes of one message; a result is a few hundred kilobytes at most."""


class LineTooLong(ValueError):
    """A line is longer than `LONGEST_LINE`, or never ends."""


class LineBuffer:
    """Give it bytes as they come; it gives back the lines that are whole, without their ends."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._length = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes.

        Raises:
            LineTooLong: what has come so far is no message.
        """
        *whole, rest = data.split(b"\n")
        lines = []
        for piece in whole:
            lines.append(b"".join([*self._parts, piece]))
            self._parts, self._length = [], 0
        if rest:
            self._parts.append(rest)
            self._length += len(rest)
        if self._length > LONGEST_LINE or any(len(line) > LONGEST_LINE for line in lines):
            raise LineTooLong(f"a message is longer than {LONGEST_LINE} bytes")
        return lines
