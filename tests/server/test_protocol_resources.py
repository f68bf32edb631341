"""The index of Liger's kernels, as a model reads it."""

from __future__ import annotations

import re
from pathlib import Path

from tigon.assets import read_reference
from tigon.protocol.resources import kernel_index


def test_every_ops_file_of_liger_is_in_the_index_once(pristine_liger: Path) -> None:
    listed = re.findall(r"^- `(\w+)`", kernel_index(read_reference("kernels.toml")), re.MULTILINE)
    ops = {path.stem for path in (pristine_liger / "src/liger_kernel/ops").glob("*.py")}
    assert len(listed) == len(set(listed))
    assert set(listed) <= ops
    # What is left holds no kernel that has a module: parts of others, and set-up.
    assert {stem for stem in ops - set(listed) if not stem.startswith("_")} <= {
        "configure",
        "fused_moe_kernels",
        "utils",
    }


def test_kernels_are_under_their_tier_with_the_example_first() -> None:
    catalogue = {
        "tiers": {"1": "element-wise", "2": "rows"},
        "kernel": [
            {"stem": "a", "tier": 1, "does": "does a"},
            {"stem": "c", "tier": 2, "does": "does c"},
            {"stem": "b", "tier": 1, "does": "does b", "exemplar": True},
        ],
    }
    text = kernel_index(catalogue)
    order = [
        "## Tier 1: element-wise",
        "- `b` (read this one first): does b",
        "- `a`: does a",
        "## Tier 2: rows",
        "- `c`",
    ]
    places = [text.index(piece) for piece in order]
    assert places == sorted(places)
