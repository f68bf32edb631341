"""Reading skills, and the skill's own form."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tigon.protocol.skills import load_skills, skill, split_frontmatter

AGENTSKILLS = Path(sys.executable).with_name("agentskills")


def test_the_front_matter_is_read() -> None:
    fields, body = split_frontmatter("---\nname: a\ndescription: it: does\n---\n\n# A\n", "here")
    assert fields == {"name": "a", "description": "it: does"}
    assert body == "# A\n"


@pytest.mark.parametrize("text", ["# A\n", "---\nname: a\n# A\n", "---\nname:\n  nested: 1\n---\n"])
def test_other_front_matter_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^here: "):
        split_frontmatter(text, "here")


def test_skill_pages_are_short_and_linked() -> None:
    for loaded in load_skills():
        for file in loaded.files:
            assert len(file.text.splitlines()) < 150, file.path
        assert set(re.findall(r"\]\((\w+\.md)\)", loaded.body)) == {file.path for file in loaded.files[1:]}


def test_every_tool_that_a_skill_names_is_there() -> None:
    from tigon.protocol.tools import TOOLS

    tools = {spec.run.__name__ for spec in TOOLS}
    verbs = re.compile(r"`((?:classify|get|emit|request|scaffold|run|finish|task)_\w+)`")
    named = {name for file in skill("liger-kernel-dev").files for name in verbs.findall(file.text)}
    assert named and named - {"task_id"} <= tools


@pytest.mark.skipif(not AGENTSKILLS.exists(), reason="skills-ref is not installed (it needs Python 3.11)")
def test_the_skill_is_valid() -> None:
    from tigon.assets import skills_folder

    checked = subprocess.run(
        [AGENTSKILLS, "validate", skills_folder() / "liger-kernel-dev"], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
