"""Edits of an existing Python file: find the place with libcst, change only those lines.

libcst says where each statement begins and ends; text is inserted or cut between lines, so the rest
of the file stays byte for byte, line ends included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider


class CannotEdit(Exception):
    """The file is not as expected; the text names it and what is missing."""


@dataclass(frozen=True)
class Import:
    """One `from module import name`; `first` and `last` are 0-based lines."""

    module: str
    name: str
    first: int
    last: int
    top_level: bool


@dataclass(frozen=True)
class Definition:
    """A top-level function or class; `first` includes its decorators and leading comments."""

    name: str
    first: int
    last: int


class SourceFile:
    """The text of a file as lines, and where its statements are."""

    def __init__(self, text: str, path: str) -> None:
        try:
            wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
        except cst.ParserSyntaxError as problem:
            raise CannotEdit(f"{path} is not valid Python (line {problem.raw_line}).") from None
        self.path = path
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.lines = text.splitlines(keepends=True)
        self._positions = wrapper.resolve(PositionProvider)
        self.module = wrapper.module

    @property
    def text(self) -> str:
        return "".join(self.lines)

    def insert(self, line: int, new: list[str]) -> None:
        """Insert lines before 0-based `line`; ends are added."""
        if line >= len(self.lines) and self.lines and not self.lines[-1].endswith("\n"):
            self.lines[-1] += self.newline
        self.lines[line:line] = [entry + self.newline for entry in new]

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """First and last 0-based line of a node."""
        position = self._positions[node]
        return position.start.line - 1, position.end.line - 1

    def imports(self) -> list[Import]:
        """Every `from … import …`, in order."""
        return list(self._imports(self.module.body, True))

    def _imports(self, body: object, top_level: bool) -> Iterator[Import]:
        for statement in body:  # type: ignore[attr-defined]
            if isinstance(statement, cst.SimpleStatementLine):
                for small in statement.body:
                    if isinstance(small, cst.ImportFrom) and not isinstance(small.names, cst.ImportStar):
                        module = self.module.code_for_node(small.module) if small.module else ""
                        for alias in small.names:
                            yield Import(module, str(alias.evaluated_name), *self.span(statement), top_level)
            elif isinstance(statement, (cst.If, cst.Try)):
                yield from self._imports(statement.body.body, False)

    def definitions(self) -> list[Definition]:
        """Top-level functions and classes, in order."""
        found = []
        for statement in self.module.body:
            if isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
                first, last = self.span(statement)
                found.append(Definition(statement.name.value, self._above(first), last))
        return found

    def _above(self, line: int) -> int:
        """Up over comments that belong to the statement below them."""
        while line > 0 and self.lines[line - 1].lstrip().startswith(("#", "@")):
            line -= 1
        return line

    def string_list(self, name: str) -> list[tuple[str, int]]:
        """Entries of a top-level list of strings, each with its 0-based line.

        Raises:
            CannotEdit: there is no such list, one entry a line.
        """
        for statement in self.module.body:
            if not isinstance(statement, cst.SimpleStatementLine):
                continue
            for small in statement.body:
                if isinstance(small, cst.Assign) and isinstance(small.value, cst.List):
                    target = small.targets[0].target
                    if isinstance(target, cst.Name) and target.value == name:
                        return [
                            (str(e.value.evaluated_value), self.span(e.value)[0])
                            for e in small.value.elements
                            if isinstance(e.value, cst.SimpleString)
                        ]
        raise CannotEdit(f"{self.path} has no list {name}.")
