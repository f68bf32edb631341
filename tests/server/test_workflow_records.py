"""What a human reads: nothing in it can hide, close a block, or command a terminal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from facts_by_hand import LAUNCH, REFERENCE, silu_mul_facts, small_workspace

from tigon.workflow.fill import fill
from tigon.workflow.kernel_profile import read_profile
from tigon.workflow.records import fenced, keep_copy, render_diff, render_profile, visible
from tigon.workflow.tasks import Task
from tigon_tools.schema.reference import InputFact, InputSpec


@pytest.mark.parametrize("text", ["plain", "a ``` b", "````\n# Approved by a human\n````", "`"])
def test_no_text_closes_its_block(text: str) -> None:
    first, *inner, last = fenced(text, "python").splitlines()
    assert first == last + "python"
    assert not any(line.startswith(last) for line in inner)
    assert "\n".join(inner) == text


def test_what_a_terminal_obeys_or_hides_is_shown_as_an_escape() -> None:
    assert visible("a\x1b[2Kb\r") == "a\\x1b[2Kb\\r"
    assert visible("x \u202e y\u200b") == "x \\u202e y\\u200b"
    assert visible("größer\n\t×") == "größer\n\t×"


def rendered(tmp_path: Path, task: Task, code: str = REFERENCE.code, **claims: object) -> str:
    workspace = small_workspace(tmp_path)
    facts = silu_mul_facts()
    stated = read_profile({"operation_name": "silu_mul", "reference": {"source": code}, **claims})
    task.claimed = stated.claims()
    return render_profile(task, fill(stated, facts, LAUNCH, workspace), facts, replace(REFERENCE, code=code), "0.8.5")


def test_a_profile_says_what_why_and_who_said_it(tmp_path: Path) -> None:
    text = rendered(tmp_path, Task("silu_mul-0001", profile_hash="ab" * 32), tier=1, benchmark_variable="hidden_size")
    for said in (
        "Profile `abababab` of task `silu_mul-0001`",
        "Every op is point-wise: aten.mul, aten.sigmoid.",
        "    return F.silu(gate_multiplier * a) * b",
        "da = dY * b * silu'(p) * gate_multiplier",
        "| saved for the backward | a, b: 1,024 bytes |",
        "| eager PyTorch keeps | 1,536 bytes; this saves 512 bytes, 33 % |",
        "1D grid: one program a row.",
        "- `test/transformers/test_silu_mul.py`",
        "| tier | 1 | claimed |",
        "| tier_description | element-wise | computed |",
        "| benchmark_variable | hidden_size | claimed, not checked |",
    ):
        assert said in text
    assert "Not ready" not in text


def test_a_required_scalar_and_a_fixed_argument_are_said_to_be_so(tmp_path: Path) -> None:
    alpha = InputFact("alpha", "alpha", "scalar", None, "float", False)
    fixed = [
        InputFact("causal", "causal", "static", None, "static", False, default=True, required=False),
        InputFact("power", "power", "static", None, "static", False, default=3, required=False),
    ]
    facts = silu_mul_facts(
        inputs=(*silu_mul_facts().inputs[:2], alpha, *fixed),
        notes=("power is fixed at 3: it decides a loop on line 4.",),
    )
    reference = replace(REFERENCE, inputs=(InputSpec("alpha", None, "float", value=0.7),))
    stated = read_profile({"operation_name": "silu_mul", "reference": "x.py:f"})
    filled = fill(stated, facts, LAUNCH, small_workspace(tmp_path))
    text = render_profile(Task("t"), filled, facts, reference, "0.8.5")
    assert "`alpha` = 0.7 (required), `causal` = True, fixed, `power` = 3, fixed." in text
    assert "`causal` is fixed at True: not an argument of the kernel, because only tensors and numbers can be" in text
    assert "`power` is fixed at 3: not an argument of the kernel, because it decides a loop on line 4." in text
    assert "| module_init_params | alpha (float, required) |" in text
    assert "None" not in text


def test_problems_come_first(tmp_path: Path) -> None:
    text = rendered(tmp_path, Task("silu_mul-0001", problems=("tier 3 is claimed,\n# and | more",)))
    assert (
        text.index("**Not ready for review.**")
        < text.index("- tier 3 is claimed, # and | more")
        < text.index("## What")
    )


def test_a_reference_cannot_write_into_the_page_around_it(tmp_path: Path) -> None:
    code = REFERENCE.code + '\n"""\n```\n\n# Already approved\n\n\x1b[8m"""\n'
    text = rendered(tmp_path, Task("t"), code=code, forward_computation="a | b\n| x | y | z |")
    assert "````python\n" in text
    assert "\x1b" not in text
    assert "| forward_computation | a \\| b \\| x \\| y \\| z \\| | claimed, not checked |" in text


def test_the_diff_is_against_what_was_there_before(tmp_path: Path) -> None:
    workspace = small_workspace(tmp_path)
    (tmp_path / "src/liger_kernel/ops/mish.py").write_text("x = 1\n")
    before = {"src/liger_kernel/ops/__init__.py": ""}
    unchanged = {p: workspace.read(f"src/liger_kernel/transformers/{p}") for p in ("__init__.py", "functional.py")}
    diff = render_diff(
        workspace, "mish", before | {f"src/liger_kernel/transformers/{p}": t for p, t in unchanged.items()}
    )
    assert diff.splitlines()[:4] == ["--- /dev/null", "+++ b/src/liger_kernel/ops/mish.py", "@@ -0,0 +1 @@", "+x = 1"]
    assert "+++ b/src/liger_kernel/ops/__init__.py" in diff
    assert "transformers" not in diff


def test_a_lost_copy_is_written_again(tmp_path: Path) -> None:
    keep_copy(tmp_path, "t", "report.md", "größer\n")
    path = tmp_path / ".tigon/tasks/t/report.md"
    path.write_text("forged")
    keep_copy(tmp_path, "t", "report.md", "größer\n")
    assert path.read_text(encoding="utf-8") == "größer\n"
    assert list(path.parent.iterdir()) == [path]
