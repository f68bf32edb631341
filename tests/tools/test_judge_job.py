"""The job as its callers see it: what it takes, what it promises about time, and what it reports."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tigon_tools.judge.judge_job import run
from tigon_tools.schema.errors import JobError
from tigon_tools.schema.judge import Finding, JudgeRequest, JudgeResult
from tigon_tools.schema.reference import InputSpec, Reference

HEADER = "import torch\nimport torch.nn.functional as F\n\n\n"
DOUBLE = "def f(x):\n    return 2 * torch.tanh(x)\n"


def judged(
    folder: Path, reference: str, candidate: str, *inputs: InputSpec, name: str = "f", **more: object
) -> JudgeResult:
    path = folder / "candidate.py"
    path.write_text(HEADER + candidate)
    specs = inputs or (InputSpec("x", (3, 48)),)
    request = JudgeRequest(f"{path}:{name}", Reference(HEADER + reference, "f", inputs=specs), **more)  # type: ignore[arg-type]
    return run(request)


def shown(result: JudgeResult) -> str:
    return "\n".join(f"{f.status} {f.check}: {f.detail} [{f.case}]" for f in result.findings)


def failed(result: JudgeResult) -> dict[str, Finding]:
    return {f.check: f for f in result.findings if f.status == "failed"}


def test_passed_checks_are_findings_too(tmp_path: Path) -> None:
    result = judged(tmp_path, DOUBLE, DOUBLE)
    assert result.passed, shown(result)
    passed = {f.check: f.detail for f in result.findings if f.status == "passed"}
    assert set(passed) == {"forward", "gradient", "input_modified", "out_of_bounds", "alias", "repeat", "reuse"}
    assert f"({result.cases} comparisons)" in passed["forward"]


def test_the_same_seed_gives_the_same_findings(tmp_path: Path) -> None:
    wrong = DOUBLE.replace("2 *", "2.001 *")
    first, again = (judged(tmp_path, DOUBLE, wrong, seed=5).findings for _ in range(2))
    assert first == again
    assert judged(tmp_path, DOUBLE, wrong, seed=6).findings != first


def test_time_is_kept_and_what_was_left_out_is_said(tmp_path: Path) -> None:
    slow = "import time\n\n\ndef f(x):\n    time.sleep(0.5)\n    return 2 * torch.tanh(x)\n"
    start = time.monotonic()
    result = judged(tmp_path, DOUBLE, slow, max_seconds=2.0)
    assert time.monotonic() - start < 12
    left = [f.detail for f in result.findings if f.status == "skipped"]
    assert len(left) == 1
    assert "cases were not run within 2 s" in left[0]
    assert result.passed


def test_a_candidate_that_hangs_ends_with_the_time(tmp_path: Path) -> None:
    hangs = "def f(x):\n    while True:\n        pass\n"
    start = time.monotonic()
    result = judged(tmp_path, DOUBLE, hangs, max_seconds=1.0)
    assert time.monotonic() - start < 15
    assert "no answer within" in failed(result)["crash"].detail


def test_progress_names_the_case(tmp_path: Path) -> None:
    path = tmp_path / "candidate.py"
    path.write_text(HEADER + DOUBLE)
    seen: list[tuple[str, float]] = []
    reference = Reference(HEADER + DOUBLE, "f", inputs=(InputSpec("x", (3, 48)),))
    request = JudgeRequest(f"{path}:f", reference, dtypes=("float32",))
    result = run(request, lambda text, share: seen.append((text, share)))
    assert len(seen) == result.cases
    assert ("judge: float32 (7, 33)") in [text for text, _ in seen]
    assert [share for _, share in seen] == sorted(share for _, share in seen)
    assert all(0 <= share < 1 for _, share in seen)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"dtypes": ("float8",)}, "dtype 'float8' is not judged"),
        ({"dtypes": ()}, "dtypes is empty"),
        ({"overwrites": ("y",)}, "overwrites names 'y'"),
    ],
)
def test_bad_requests(more: dict[str, object], says: str, tmp_path: Path) -> None:
    with pytest.raises(JobError, match=says) as refused:
        judged(tmp_path, DOUBLE, DOUBLE, **more)
    assert refused.value.failure.kind == "bad_request"


IN_PLACE = '''class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        with torch.no_grad():
            x.data.mul_(2 * dy)
        return x
'''  # fmt: skip


def test_an_input_may_be_overwritten_only_where_that_is_said(tmp_path: Path) -> None:
    square = "def f(x):\n    return x * x\n"
    undeclared = judged(tmp_path, square, IN_PLACE, name="Scale", dtypes=("float32",))
    assert failed(undeclared)["input_modified"].detail.startswith("input x")
    declared = judged(tmp_path, square, IN_PLACE, name="Scale", dtypes=("float32",), overwrites=("x",))
    # Rows that share memory cannot hold a gradient each, so an expanded input still shows.
    assert {f.case for f in declared.findings if f.status == "failed"} <= {"float32 (6, 40) expanded inputs"}


def test_several_outputs_a_mask_and_an_integer_input(tmp_path: Path) -> None:
    code = "def f(x, y, k):\n    z = torch.where(k > 1, x, y)\n    return z, x > y, torch.sin(x) * y\n"
    specs = (InputSpec("x", (4, 9)), InputSpec("y", (9,)), InputSpec("k", (4, 9), "int64", False))
    right = judged(tmp_path, code, code, *specs)
    assert right.passed, shown(right)
    swapped = code.replace("return z, x > y, torch.sin(x) * y", "return torch.sin(x) * y, x > y, z")
    assert "the two are swapped" in failed(judged(tmp_path, code, swapped, *specs))["forward"].detail
    wrong_mask = judged(tmp_path, code, code.replace("x > y,", "x < y,"), *specs, dtypes=("float32",))
    assert "differs" in failed(wrong_mask)["forward"].detail
    fewer = judged(tmp_path, code, code.replace(", torch.sin(x) * y", ""), *specs, dtypes=("float32",))
    assert "returns 2 tensors, and the reference 3" in failed(fewer)["forward"].detail


MODULE = '''class f(torch.nn.Module):
    def __init__(self, scale: float = 1.5):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(16))
        self.scale = scale

    def forward(self, x):
        return F.silu(self.scale * x) * self.weight
'''  # fmt: skip


def test_a_module_is_judged_with_its_parameters(tmp_path: Path) -> None:
    spec = InputSpec("x", (4, 16))
    right = judged(tmp_path, MODULE, MODULE, spec)
    assert right.passed, shown(right)
    wrong = judged(tmp_path, MODULE, MODULE.replace("* self.weight", "* (self.weight + 0.01)"), spec)
    assert {"forward", "gradient"} <= set(failed(wrong))
    constant = judged(tmp_path, MODULE, MODULE.replace("self.scale *", "1.5 *"), spec)
    assert "a scalar is a constant" in failed(constant)["forward"].detail


def test_shapes_that_the_reference_does_not_take_are_left_out(tmp_path: Path) -> None:
    code = "def f(x):\n    return torch.tanh(x.reshape(-1, 8, 6)).reshape(x.shape)\n"
    result = judged(tmp_path, code, code, InputSpec("x", (4, 48)))
    assert result.passed, shown(result)
    assert "the reference does not take" in next(f.detail for f in result.findings if f.check == "shapes")
    assert result.cases >= 1


def test_nothing_shown_is_not_passed(tmp_path: Path) -> None:
    code = "def f(x):\n    return torch.tanh(x.reshape(5, 1031)).reshape(x.shape)\n"
    result = judged(tmp_path, code, code, InputSpec("x", (5, 1031)), dtypes=("float16",), max_seconds=0.0)
    assert not result.passed


def test_an_output_that_is_the_input_is_an_alias(tmp_path: Path) -> None:
    result = judged(tmp_path, "def f(x):\n    return x * 1.0\n", "def f(x):\n    return x.view_as(x)\n")
    assert "an output shares memory with an input" in failed(result)["alias"].detail


def test_nan_that_gets_lost_is_flagged(tmp_path: Path) -> None:
    relu = "def f(x):\n    return torch.relu(x)\n"
    loses = "def f(x):\n    return torch.where(x > 0, x, 0.0)\n"
    result = judged(tmp_path, relu, loses)
    assert result.passed, shown(result)
    assert any(f.status == "flagged" and "NaN or infinity is lost" in f.detail for f in result.findings)


def test_a_row_beyond_liger_s_limit_may_be_refused(tmp_path: Path) -> None:
    refuses = "def f(x):\n    if x.shape[-1] > {limit}:\n        raise RuntimeError('too long')\n    return 2 * torch.tanh(x)\n"
    result = judged(tmp_path, DOUBLE, refuses.format(limit=65536))
    assert result.passed, shown(result)
    assert [f.check for f in result.findings if f.status == "flagged"] == ["long_rows"]
    assert "too long" in failed(judged(tmp_path, DOUBLE, refuses.format(limit=4096)))["run"].detail


def test_one_dimension_and_none(tmp_path: Path) -> None:
    for shape in ((48,), (), (2, 3, 2, 8)):
        result = judged(tmp_path, DOUBLE, DOUBLE, InputSpec("x", shape))
        assert result.passed, shown(result)


def test_work_done_by_pytorch_is_no_kernel(tmp_path: Path) -> None:
    assert judged(tmp_path, DOUBLE, DOUBLE).passed
    result = judged(tmp_path, DOUBLE, DOUBLE, kernels=True, dtypes=("float32",))
    assert set(failed(result)) == {"kernels"}
    assert "launches no Triton kernel" in failed(result)["kernels"].detail


def test_a_gradient_never_compared_is_not_passed(tmp_path: Path) -> None:
    """A reference whose gradient disappears for the values that are tried shows nothing of the backward."""
    code = "def f(x):\n    return torch.tanh(x), torch.tanh(x).detach()\n"
    assert judged(tmp_path, code, code).passed
    gone = "def f(x):\n    return torch.tanh(x if x.shape == (300, 4000) else x.detach())\n"
    result = judged(tmp_path, gone, gone, InputSpec("x", (300, 4000)), dtypes=("float32",))
    assert "no gradient was compared" in failed(result)["gradient"].detail


def test_a_number_where_the_reference_makes_nan_of_numbers_is_flagged(tmp_path: Path) -> None:
    reference = "def f(x):\n    return torch.exp(x) / (1 + torch.exp(x))\n"
    result = judged(tmp_path, reference, "def f(x):\n    return torch.sigmoid(x)\n", dtypes=("float32",))
    assert result.passed, shown(result)
    root = "def f(x):\n    return torch.sqrt(x)\n"
    result = judged(tmp_path, root, "def f(x):\n    return torch.sqrt(x.clamp(min=0))\n", dtypes=("float32",))
    assert any(f.status == "flagged" and "where the reference is nan" in f.detail for f in result.findings)


@pytest.mark.parametrize(
    "formula",
    ["torch.tanh(torch.tanh(x))", "torch.exp(x) * torch.exp(-x) * x", "torch.exp(x) / (1 + torch.exp(x))"],
)
def test_what_float32_cannot_hold_is_no_fault(formula: str, tmp_path: Path) -> None:
    """Saturation, cancellation and results below the normal numbers: another right formula is not failed for them."""
    reference = f"def f(x):\n    return {formula}\n"
    other = {
        "torch.tanh(torch.tanh(x))": "torch.tanh(2 * torch.sigmoid(2 * x.float()) - 1).to(x.dtype)",
        "torch.exp(x) * torch.exp(-x) * x": "(x * (torch.exp(-x.float()) * torch.exp(x.float()))).to(x.dtype)",
        "torch.exp(x) / (1 + torch.exp(x))": "torch.exp(x.float() - torch.log1p(torch.exp(x.float()))).to(x.dtype)",
    }[formula]
    for seed in range(3):
        result = judged(tmp_path, reference, f"def f(x):\n    return {other}\n", seed=seed)
        assert result.passed, shown(result)


def test_one_element_with_a_stride_of_its_own(tmp_path: Path) -> None:
    code = "def f(x, alpha):\n    return torch.tanh(alpha * x)\n"
    result = judged(tmp_path, code, code, InputSpec("x", (4, 16)), InputSpec("alpha", (1,)), dtypes=("float32",))
    assert result.passed, shown(result)


def test_one_label_a_row(tmp_path: Path) -> None:
    """An integer for each row goes with the rows, whatever the number of columns is."""
    code = "def f(x, label):\n    return F.nll_loss(F.log_softmax(x, -1), label, reduction='none')\n"
    inputs = (InputSpec("x", (8, 8)), InputSpec("label", (8,), "int64", False))
    result = judged(tmp_path, code, code, *inputs, dtypes=("float32",))
    assert result.passed, shown(result)
    assert result.cases > 10
