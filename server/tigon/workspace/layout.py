"""Liger's layout: where the pieces of a kernel are in a checkout."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

OPS_INIT = "src/liger_kernel/ops/__init__.py"
TRANSFORMERS_INIT = "src/liger_kernel/transformers/__init__.py"
FUNCTIONAL = "src/liger_kernel/transformers/functional.py"


class NotAWorkspace(Exception):
    """A folder that is not a Liger checkout."""


@dataclass(frozen=True)
class KernelPaths:
    """The files of one kernel, relative to the workspace, in the order a reviewer reads them."""

    ops: str
    module: str
    test: str
    benchmark: str

    @classmethod
    def of(cls, operation_name: str) -> KernelPaths:
        return cls(
            f"src/liger_kernel/ops/{operation_name}.py",
            f"src/liger_kernel/transformers/{operation_name}.py",
            f"test/transformers/test_{operation_name}.py",
            f"benchmark/scripts/benchmark_{operation_name}.py",
        )

    def part(self, name: str) -> str:
        """ "ops", "module", "test" or "benchmark"."""
        path: str = getattr(self, name)
        return path


def is_workspace(root: Path) -> bool:
    """Whether a folder is a checkout in Liger's layout."""
    return all((root / path).is_file() for path in (OPS_INIT, TRANSFORMERS_INIT, FUNCTIONAL))


def find_workspace(folder: Path) -> Path | None:
    """The checkout that `folder` is or is in; None where there is none."""
    start = folder.expanduser().resolve()
    return next((path for path in (start, *start.parents) if is_workspace(path)), None)


@dataclass(frozen=True)
class Workspace:
    """A Liger checkout."""

    root: Path

    @classmethod
    def open(cls, folder: Path) -> Workspace:
        """The checkout that `folder` is or is in.

        Raises:
            NotAWorkspace: with what is missing, and how to make one.
        """
        root = find_workspace(folder)
        if root is None:
            raise NotAWorkspace(
                f"{folder} is not a Liger checkout, nor in one: it has no {OPS_INIT}. "
                f"Make one with `tigon init PATH`, or go to one."
            )
        return cls(root)

    @property
    def liger_version(self) -> str:
        with (self.root / "pyproject.toml").open("rb") as file:
            return str(tomllib.load(file)["project"]["version"])

    def read(self, path: str) -> str:
        """A file's text with its own line ends."""
        with (self.root / path).open(encoding="utf-8", newline="") as file:
            return file.read()

    def exists(self, path: str) -> bool:
        return (self.root / path).exists()

    def exported_ops(self) -> dict[str, str]:
        """Names that `liger_kernel.ops` exports, each with the module it comes from."""
        return _imports(self.read(OPS_INIT), "liger_kernel.ops.")

    def exported_modules(self) -> dict[str, str]:
        """Names that `liger_kernel.transformers` exports, each with the module it comes from."""
        return _imports(self.read(TRANSFORMERS_INIT), "liger_kernel.transformers.")

    def functional_names(self) -> set[str]:
        """Functions of `liger_kernel.transformers.functional`."""
        return set(re.findall(r"^def (\w+)\(", self.read(FUNCTIONAL), re.MULTILINE))

    def kernels(self) -> list[str]:
        """Stems of the kernel files in `ops`."""
        folder = self.root / "src/liger_kernel/ops"
        private = {"__init__", "utils", "configure"}
        return sorted(p.stem for p in folder.glob("*.py") if p.stem not in private and not p.stem.startswith("_"))


def _imports(text: str, prefix: str) -> dict[str, str]:
    found = re.findall(rf"^from {re.escape(prefix)}([\w.]+) import (\w+)", text, re.MULTILINE)
    return {name: module for module, name in found}
