"""Liger's own code by kernel or by tier, from the workspace, so always the version being worked on."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

from tigon.assets import read_reference
from tigon.workspace.layout import KernelPaths, Workspace
from tigon.workspace.syntax_edit import CannotEdit, SourceFile

PARTS = ("ops", "module", "test", "benchmark")

LONGEST_ANSWER = 9000
"""Characters of code in one answer: with the rest of the answer under the 10,000 that clients show whole."""


class UnknownKernel(Exception):
    """No such kernel or tier in this workspace; the text says what there is."""


@dataclass(frozen=True)
class CodePart:
    """Lines of one file; `lines` as "12-80 of 200"."""

    path: str
    lines: str
    text: str


def kernel_index() -> list[dict[str, Any]]:
    """The index of Liger's kernels, from `references/`."""
    return list(read_reference("kernels.toml")["kernel"])


def find(
    workspace: Workspace, kernel: str | None = None, tier: int | None = None, part: str | None = None
) -> list[CodePart]:
    """The code of a kernel, or of the kernel to read first for a tier.

    part: None gives the ops file, and the module where there is room.

    Raises:
        UnknownKernel: with near names, or the tiers there are.
    """
    stem = _stem(workspace, kernel, tier)
    wanted = [part] if part else ["ops", "module"]
    room, parts = LONGEST_ANSWER, []
    for name in wanted:
        path = KernelPaths.of(stem).part(name)
        if not workspace.exists(path):
            if part:
                raise UnknownKernel(f"{stem} has no {part}: {path} is not in the workspace.")
            continue
        found = _cut(workspace.read(path), path, room)
        if found is not None:
            parts.append(found)
            room -= len(found.text)
    if not parts:
        raise UnknownKernel(f"{stem} has neither an ops file nor a module in this workspace.")
    return parts


def _stem(workspace: Workspace, kernel: str | None, tier: int | None) -> str:
    present = workspace.kernels()
    if kernel is not None:
        if kernel in present:
            return kernel
        near = difflib.get_close_matches(kernel, present, n=4, cutoff=0.4)
        raise UnknownKernel(
            f"there is no kernel {kernel!r} in this workspace. "
            + (f"Near it: {', '.join(near)}." if near else f"There are: {', '.join(present)}.")
        )
    if tier is None:
        raise UnknownKernel("name a kernel (as in `swiglu`) or a tier (1, 2 or 3).")
    of_tier = [entry for entry in kernel_index() if entry["tier"] == tier and entry["stem"] in present]
    if not of_tier:
        raise UnknownKernel(f"this workspace has no kernel of tier {tier}; tiers are 1, 2 and 3.")
    return str(max(of_tier, key=lambda entry: bool(entry.get("exemplar")))["stem"])


def _cut(text: str, path: str, room: int) -> CodePart | None:
    """The whole file if it fits, else its top and as many whole definitions as do; the rest by name."""
    lines = text.splitlines()
    if len(text) <= room:
        return CodePart(path, f"1-{len(lines)} of {len(lines)}", text)
    try:
        definitions = SourceFile(text, path).definitions()
    except CannotEdit:
        definitions = []
    left_out: list[str] = []
    end = definitions[0].first if definitions else 0
    for definition in definitions:
        size = len("\n".join(lines[: definition.last + 1]))
        # Room for the list of what is left out: about 40 characters a name.
        if not left_out and size + 40 * len(definitions) < room:
            end = definition.last + 1
        else:
            left_out.append(f"{definition.name} (line {definition.first + 1})")
    if end == 0:
        return None
    note = f"\n\n# Not shown, to keep this short: {', '.join(left_out)}."
    return CodePart(path, f"1-{end} of {len(lines)}", ("\n".join(lines[:end]) + note)[:room])
