"""A test file may grow; what was there stays."""

from __future__ import annotations

import pytest

from tigon.workflow.kept_tests import weakened

BEFORE = """import pytest
import torch

SHAPES = [(2, 3)]


def _same(want, got):
    assert torch.equal(want, got)


@pytest.mark.parametrize("shape", SHAPES)
def test_it(shape):
    _same(torch.ones(shape), torch.ones(shape))
"""


@pytest.mark.parametrize(
    "now",
    [
        BEFORE,
        BEFORE.replace("import torch\n", "import torch\n\n# A comment.\n"),
        BEFORE + "\n\nMORE = [(4, 5)]\n\n\ndef test_more():\n    assert MORE\n",
    ],
)
def test_growing_is_fine(now: str) -> None:
    assert weakened(BEFORE, now) == []


@pytest.mark.parametrize(
    ("now", "says"),
    [
        ("def test_it():\n    assert True\n", "test_it is changed or gone"),
        (BEFORE.replace("torch.equal(want, got)", "True"), "_same is changed or gone"),
        (BEFORE.replace("(2, 3)", ""), "SHAPES is changed or gone"),
        (BEFORE.replace("@pytest", "@pytest.mark.skip\n@pytest"), "test_it is changed or gone"),
        (BEFORE + "\n\ndef _same(want, got):\n    pass\n", "_same is defined again"),
        (BEFORE + "\n\nSHAPES.clear()\nif True:\n    SHAPES = []\n", "SHAPES is defined again"),
        (BEFORE + "\n\nfor test_it in ():\n    pass\n", "test_it is defined again"),
        (BEFORE + "\n\nfrom math import inf as torch\n", "torch is defined again"),
        (BEFORE + "\npytestmark = pytest.mark.skip\n", "pytestmark is defined again or switches tests off"),
        (BEFORE + "\nSHAPES.clear()\n", "`SHAPES.clear()` reaches the other tests"),
        (BEFORE + "\ndel test_it\n", "`del test_it` reaches the other tests"),
        (BEFORE + "\ntorch.equal = print\n", "reaches the other tests"),
        (BEFORE + "\n@pytest.fixture(autouse=True)\ndef _off():\n    pytest.skip()\n", "_off reaches the other tests"),
        (BEFORE + "\ndef broken(:\n", "not valid Python"),
    ],
)
def test_what_is_weaker_is_named(now: str, says: str) -> None:
    assert any(says in phrase for phrase in weakened(BEFORE, now))
