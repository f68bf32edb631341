"""Skills over MCP (SEP-2640): `skills/list`, `skills/get`, and the files as `skill://NAME/PATH` resources.

The files are read once, when the server is built: what `skills/list` gives a digest of is what a read
returns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.extension import Extension, MethodBinding, ResourceBinding
from mcp.server.mcpserver.resources import TextResource
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, PaginatedRequestParams, RequestParams

from tigon.assets import skills_folder

EXTENSION = "io.modelcontextprotocol/skills"
CACHE_MILLISECONDS = 3_600_000
"""Skills change only with the installed version; an hour spares a client the asking."""


@dataclass(frozen=True)
class SkillFile:
    """path: relative to the skill's folder, with forward slashes."""

    path: str
    text: str

    @property
    def manifest(self) -> dict[str, Any]:
        raw = self.text.encode()
        return {"digest": f"sha256:{hashlib.sha256(raw).hexdigest()}", "size": len(raw)}


@dataclass(frozen=True)
class Skill:
    """A folder in Agent Skills format; `files` begins with SKILL.md."""

    name: str
    frontmatter: dict[str, str]
    body: str
    files: tuple[SkillFile, ...]

    @property
    def uri(self) -> str:
        return self.uri_of(self.files[0])

    def uri_of(self, file: SkillFile) -> str:
        return f"skill://{self.name}/{file.path}"

    @property
    def entry(self) -> dict[str, Any]:
        return {
            "uri": self.uri,
            "frontmatter": self.frontmatter,
            "resources": [{"uri": self.uri_of(file), **file.manifest} for file in self.files],
        }


@lru_cache(maxsize=1)
def load_skills() -> tuple[Skill, ...]:
    """The skills that are installed with Tigon, by name.

    Raises:
        ValueError: a SKILL.md without the front matter that clients need.
    """
    return tuple(_load(folder) for folder in sorted(skills_folder().iterdir()) if (folder / "SKILL.md").is_file())


def skill(name: str) -> Skill:
    return next(skill for skill in load_skills() if skill.name == name)


def _load(folder: Path) -> Skill:
    first = folder / "SKILL.md"
    text = first.read_text(encoding="utf-8")
    others = [path for path in folder.rglob("*.md") if path != first]
    # In the order in which SKILL.md names them, which is the order of the stages.
    others.sort(key=lambda path: (text.find(path.name) % (len(text) + 1), path.name))
    files = tuple(
        SkillFile(path.relative_to(folder).as_posix(), path.read_bytes().decode("utf-8")) for path in (first, *others)
    )
    frontmatter, body = split_frontmatter(files[0].text, where=str(first))
    if frontmatter.get("name") != folder.name or not frontmatter.get("description"):
        raise ValueError(f"{first}: `name` must be {folder.name!r}, and `description` must be there")
    return Skill(folder.name, frontmatter, body, files)


def split_frontmatter(text: str, where: str) -> tuple[dict[str, str], str]:
    """The front matter and the Markdown after it. Only `key: value` lines: our skills need no more of
    YAML."""
    lines = text.split("\n")
    if lines[0] != "---" or "---" not in lines[1:]:
        raise ValueError(f"{where}: no front matter between two lines of ---")
    end = lines.index("---", 1)
    fields: dict[str, str] = {}
    for line in lines[1:end]:
        key, colon, value = line.partition(":")
        if not colon or not key.isidentifier() or not value.strip():
            raise ValueError(f"{where}: cannot read {line!r} in the front matter; write `key: value`")
        fields[key] = value.strip()
    return fields, "\n".join(lines[end + 1 :]).strip() + "\n"


class GetSkillParams(RequestParams):
    uri: str


class SkillsExtension(Extension):
    """Declares the extension and serves its two methods and the files."""

    identifier = EXTENSION

    def methods(self) -> Sequence[MethodBinding]:
        return (
            MethodBinding("skills/list", PaginatedRequestParams, _list_skills),
            MethodBinding("skills/get", GetSkillParams, _get_skill),
        )

    def resources(self) -> Sequence[ResourceBinding]:
        return [
            ResourceBinding(
                TextResource(
                    uri=skill.uri_of(file),
                    name=f"{skill.name}/{file.path}",
                    description=skill.frontmatter["description"] if file is skill.files[0] else None,
                    mime_type="text/markdown",
                    text=file.text,
                )
            )
            for skill in load_skills()
            for file in skill.files
        ]


async def _list_skills(ctx: ServerRequestContext[Any, Any], params: PaginatedRequestParams) -> dict[str, Any]:
    return {
        "skills": [skill.entry for skill in load_skills()],
        "ttlMs": CACHE_MILLISECONDS,
        "cacheScope": "public",
    }


async def _get_skill(ctx: ServerRequestContext[Any, Any], params: GetSkillParams) -> dict[str, Any]:
    for found in load_skills():
        if params.uri == found.uri:
            return {"skill": found.entry, "ttlMs": CACHE_MILLISECONDS, "cacheScope": "public"}
    known = ", ".join(found.uri for found in load_skills())
    raise MCPError(
        code=INVALID_PARAMS,
        message=f"there is no skill {params.uri}; there is {known}",
        data={"uri": params.uri},
    )
