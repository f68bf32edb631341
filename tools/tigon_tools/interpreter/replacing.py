"""Putting a repaired function in the place of Triton's, or saying that the place is not there."""

from __future__ import annotations

from typing import Any

from tigon_tools.interpreter.refusal import UnknownTriton


def replace(owner: Any, name: str, repaired: Any) -> Any:
    """Set `owner.name` (a module's or a class's) and return what was there.

    Raises:
        UnknownTriton: this Triton has no such attribute; setting it would repair nothing.
    """
    original = require(owner, name)
    setattr(owner, name, repaired)
    return original


def require(owner: Any, name: str) -> Any:
    """`owner.name`, which the repairs rely on.

    Raises:
        UnknownTriton: this Triton has no such attribute.
    """
    missing = object()
    found = getattr(owner, name, missing)
    if found is missing:
        import triton

        place = getattr(owner, "__qualname__", None) or getattr(owner, "__name__", repr(owner))
        raise UnknownTriton(
            f"Triton {triton.__version__} has no `{name}` in `{place}`, which Tigon's repairs of the interpreter "
            "rely on. Install a Triton from 3.6 to 3.9, or run on a GPU."
        )
    return found
