"""Where `skills/` and `references/` are: in the package of a wheel, beside `server/` in a checkout."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_PACKAGE = Path(__file__).resolve().parent


def _folder(name: str) -> Path:
    for parent in (_PACKAGE, _PACKAGE.parent.parent):
        if (parent / name).is_dir():
            return parent / name
    raise FileNotFoundError(f"{name}/ is neither in the package {_PACKAGE} nor in its checkout: install tigon again")


def skills_folder() -> Path:
    """The folder with one sub-folder for each skill."""
    return _folder("skills")


@cache
def read_reference(name: str) -> dict[str, Any]:
    """A TOML file of `references/`, parsed."""
    with (_folder("references") / name).open("rb") as file:
        return tomllib.load(file)
