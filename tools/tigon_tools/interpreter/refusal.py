"""What the repaired interpreter says instead of computing something wrong."""

from __future__ import annotations


class UnsupportedOnCPU(RuntimeError):
    """A kernel asks for something whose result on a CPU could not be what a GPU computes.

    The message is a sentence: what cannot be right here, and what to do.
    """


class UnknownTriton(RuntimeError):
    """The installed Triton lacks something that has to be repaired, so nothing may run in it."""
