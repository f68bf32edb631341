"""Real Triton kernels with one thing wrong each: the judge fails them and says what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from judged_kernels import SILU_MUL, SILU_MUL_REFERENCE, SQUASH, SQUASH_REFERENCE, write

from tigon_tools.judge.judge_job import run
from tigon_tools.schema.judge import Finding, JudgeRequest, JudgeResult


def judged(path: Path, name: str, dtypes: tuple[str, ...] | None = ("float32",)) -> JudgeResult:
    reference = SILU_MUL_REFERENCE if name == "SiluMul" else SQUASH_REFERENCE
    return run(JudgeRequest(f"{path}:{name}", reference, dtypes=dtypes))


def failed(result: JudgeResult) -> dict[str, Finding]:
    return {f.check: f for f in result.findings if f.status == "failed"}


def shown(result: JudgeResult) -> str:
    return "\n".join(f"{f.status} {f.check}: {f.detail} [{f.case}]" for f in result.findings)


@pytest.mark.parametrize(("text", "name"), [(SILU_MUL, "SiluMul"), (SQUASH, "Squash")])
def test_right_kernels_pass(text: str, name: str, tmp_path: Path) -> None:
    result = judged(write(tmp_path, text), name, None)
    assert result.passed, shown(result)
    assert not [f for f in result.findings if f.status in ("flagged", "skipped")], shown(result)
    assert result.cases > 25


# What is changed, the check that fails, and what the finding has to say.
MUTANTS = {
    "mask dropped": (
        [("c_ptr + row * c_stride + columns, c, mask=mask", "c_ptr + row * c_stride + columns, c")],
        "out_of_bounds",
        ["past the end of a tensor: a mask is missing or wrong", "no power of two"],
    ),
    "mask one too wide in the backward": (
        [
            ("db_ptr + row * d_stride + columns, db, mask=mask", "db_ptr + row * d_stride + columns, db, mask=columns <= n_cols"),
        ],
        "out_of_bounds",
        ["writes up to 1 elements past the end"],
    ),
    "wrong constant in the backward": (
        [("da = dc * b * scale", "da = dc * b * 2.0 * scale")],
        "gradient",
        ["the gradient of a is wrong", "by a constant factor 2"],
    ),
    "wrong constant in one term of the backward": (
        [("silu * (1 - sigmoid)", "silu * (1.1 - sigmoid)")],
        "gradient",
        ["the gradient of a is wrong"],
    ),
    "gradients swapped": (
        [("return da.reshape(dc.shape), db.reshape(dc.shape), None", "return db.reshape(dc.shape), da.reshape(dc.shape), None")],
        "gradient",
        ["the gradient of", "the two are swapped"],
    ),
    "last column not written": (
        [("tl.store(c_ptr + row * c_stride + columns, c, mask=mask)", "tl.store(c_ptr + row * c_stride + columns, c, mask=columns < n_cols - 1)")],
        "unwritten",
        ["output", "not written in the last column"],
    ),
    "gradient of b not written": (
        [("    tl.store(db_ptr + row * d_stride + columns, db, mask=mask)\n", "")],
        "unwritten",
        ["the gradient of b is not written everywhere"],
    ),
    "input modified": (
        [("        da = torch.empty_like(a, memory_format=torch.contiguous_format)\n", "        da = a\n")],
        "input_modified",
        ["input a (its memory is used for a gradient) is modified"],
    ),
    "upstream gradient modified": (
        [("        db = torch.empty_like(da)\n", "        db = dc_rows\n")],
        "input_modified",
        ["the upstream gradient is modified"],
    ),
    "stride of an input ignored": (
        [("a_ptr + row * a_stride + columns", "a_ptr + row * n_cols + columns")],
        "forward",
        ["only with expanded inputs, halves inputs: a stride is ignored"],
    ),
    "stride of the upstream gradient ignored": (
        [("dc_ptr + row * dc_stride + columns", "dc_ptr + row * n_cols + columns")],
        "gradient",
        ["only with split upstream gradients: a stride is ignored"],
    ),
    "unit stride assumed of every layout": (
        [("return x.reshape(-1, x.shape[-1]) if x.stride(-1) == 1 else", "return x.reshape(-1, x.shape[-1]) if True else")],
        "gradient",
        ["only with", "expanded upstream gradients", "a stride is ignored"],
    ),
    "scalar baked in": (
        [("gate = scale * a", "gate = 1.0 * a")],
        "forward",
        ["only with other scalars than the default"],
    ),
    "gradient missing": (
        [("db.reshape(dc.shape), None", "None, None")],
        "gradient",
        ["the gradient of b is missing"],
    ),
    "rows of a long tensor cut off": (
        [("mask = columns < n_cols", "mask = columns < tl.minimum(n_cols, 4096)")],
        "unwritten",
        ["only with rows longer than"],
    ),
    "wrong row": (
        [("row * b_stride", "(row - row % 2) * b_stride")],
        "forward",
        ["only with several rows"],
    ),
    "wrong sign": (
        [("db = dc * silu", "db = -dc * silu")],
        "gradient",
        ["the gradient of b", "it has the wrong sign"],
    ),
    "wrong dtype": (
        [("return c.reshape(a.shape)", "return c.reshape(a.shape).double()")],
        "forward",
        ["is float64, not float32"],
    ),
    "raises": (
        [("ctx.scale = scale", "raise ValueError('no such thing')")],
        "run",
        ["the candidate fails: ValueError: no such thing (candidate.py:"],
    ),
    "result cached": (
        [
            ("class SiluMul", "_KEPT = {}\n\n\nclass SiluMul"),
            ("        a_rows, b_rows = _rows(a), _rows(b)\n", "        a_rows, b_rows = _rows(a), _rows(b)\n        key = (a.data_ptr(), a.shape, scale)\n        ctx.save_for_backward(a_rows, b_rows)\n        ctx.scale = scale\n        if key in _KEPT:\n            return _KEPT[key].clone().reshape(a.shape)\n"),
            ("        return c.reshape(a.shape)", "        _KEPT[key] = c\n        return c.reshape(a.shape)"),
        ],
        "reuse",
        ["something is cached"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", MUTANTS)
def test_a_mutant_fails_with_what_is_wrong(kind: str, tmp_path: Path) -> None:
    changes, check, says = MUTANTS[kind]
    result = judged(write(tmp_path, SILU_MUL, *changes), "SiluMul")
    assert not result.passed
    found = failed(result)
    assert check in found, shown(result)
    for phrase in says:
        assert phrase in found[check].detail, shown(result)
    assert found[check].case or check == "load"


def test_overflow_of_float16(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        SQUASH,
        (
            "x = tl.load(x_ptr + offsets, mask=mask, other=0).to(tl.float32)",
            "x = tl.load(x_ptr + offsets, mask=mask, other=0)",
        ),
    )
    result = judged(path, "Squash", None)
    found = failed(result)["forward"]
    assert "is nan where the reference is" in found.detail, shown(result)
    assert "leaves the range of float16 on the way, so it was not upcast to float32" in found.detail
    assert "only in float16" in found.detail
    assert found.case.startswith("float16")


def test_a_crash_is_a_finding(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        SILU_MUL,
        (
            "        dc_rows = _rows(dc)\n",
            "        dc_rows = _rows(dc)\n        import ctypes\n        ctypes.string_at(0)\n",
        ),
    )
    result = judged(path, "SiluMul")
    assert "the candidate's process ended: killed by SIGSEGV" in failed(result)["crash"].detail
    assert [f.detail for f in result.findings if f.check == "crash" and f.status == "skipped"]


def test_a_candidate_that_cannot_be_loaded(tmp_path: Path) -> None:
    result = judged(write(tmp_path, "import no_such_package\n"), "SiluMul")
    assert "ModuleNotFoundError: No module named 'no_such_package' (candidate.py:1)" in failed(result)["load"].detail


def test_leaving_and_garbage_are_findings(tmp_path: Path) -> None:
    start = "        dc_rows = _rows(dc)\n"
    leaves = write(tmp_path, SILU_MUL, (start, f"{start}        import os\n        os._exit(7)\n"))
    assert "exit code 7" in failed(judged(leaves, "SiluMul"))["crash"].detail
    closes = write(tmp_path, SILU_MUL, (start, f"{start}        import os\n        os.closerange(3, 256)\n"))
    assert "crash" in failed(judged(closes, "SiluMul"))
