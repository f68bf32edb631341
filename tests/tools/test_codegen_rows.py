"""Generated kernels over rows: values and gradients by the judge, row lengths and texts here.

The judge compares with PyTorch in float64 over shapes, dtypes and layouts, a row of 70,001 elements among them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from codegen_zoo import import_source
from row_zoo import ROW_ZOO, row_reference

from tigon_tools.codegen.generate_job import run as generate
from tigon_tools.judge.judge_job import run as judge
from tigon_tools.schema.errors import JobError
from tigon_tools.schema.generate import GenerateRequest
from tigon_tools.schema.judge import JudgeRequest
from tigon_tools.schema.reference import InputSpec, Reference

HEADER = "import torch\nimport torch.nn.functional as F\n\n\n"


def source_of(name: str) -> str:
    return generate(GenerateRequest(row_reference(name), name, "LigerTestFunction")).ops_source


@pytest.mark.slow
@pytest.mark.parametrize("name", ROW_ZOO)
def test_the_judge_finds_nothing_in_a_generated_row_kernel(name: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(source_of(name))
    result = judge(JudgeRequest(f"{path}:LigerTestFunction", row_reference(name), kernels=True))
    failed = [f"{f.check}: {f.detail} [{f.case}]" for f in result.findings if f.status == "failed"]
    assert not failed
    assert result.cases >= 25


REFERENCES: dict[str, tuple[Callable[..., torch.Tensor], list[tuple[int, ...]]]] = {
    "softmax": (lambda x: torch.softmax(x, -1), []),
    "layer_norm": (lambda x, w, b: torch.nn.functional.layer_norm(x, x.shape[-1:], w, b, 1e-6), [(-1,), (-1,)]),
    "logsumexp": (lambda x: torch.logsumexp(x, -1), []),
    "dyt": (lambda x, alpha, gamma, beta: gamma * torch.tanh(alpha * x) + beta, [(1,), (-1,), (-1,)]),
}


@pytest.mark.parametrize("columns", [1, 7, 128, 1023, 4097, 65537, 300000])
@pytest.mark.parametrize("name", REFERENCES)
def test_rows_of_any_length(name: str, columns: int, tmp_path: Path) -> None:
    """Against PyTorch in float64, with one row, three, and none."""
    function, parameters = REFERENCES[name]
    apply = import_source(source_of(name), tmp_path, f"{name}_{columns}").LigerTestFunction.apply
    generator = torch.Generator().manual_seed(columns)
    for rows in (0, 1, 3):
        shapes = [(rows, columns), *(tuple(columns if size == -1 else size for size in shape) for shape in parameters)]
        values = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
        exact = [value.clone().requires_grad_() for value in values]
        ours = [value.float().requires_grad_() for value in values]
        extra = [1e-6] if name == "layer_norm" else []
        want, got = function(*exact), apply(*ours, *extra)
        upstream = torch.randn(want.shape, generator=generator, dtype=torch.float64)
        want.backward(upstream)
        got.backward(upstream.float())
        close(got.detach(), want.detach())
        for mine, right in zip(ours, exact, strict=True):
            close(mine.grad, right.grad)


def close(got: torch.Tensor | None, want: torch.Tensor | None) -> None:
    """To a few float32 roundings of the largest value that goes into a sum of up to 300,000."""
    assert got is not None and want is not None
    assert got.shape == want.shape
    if want.numel():
        scale = float(want.abs().max())
        torch.testing.assert_close(got.double(), want, rtol=2e-5, atol=2e-5 * max(scale, 1e-3))


def test_llama_rounds_before_the_weight_and_gemma_after(tmp_path: Path) -> None:
    x = torch.linspace(-3, 3, 2 * 64).reshape(2, 64).bfloat16()
    w = torch.linspace(0.1, 2, 64).bfloat16()
    normal = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)
    llama = import_source(source_of("llama_rms_norm"), tmp_path, "llama").LigerTestFunction.apply(x, w, 1e-6)
    gemma = import_source(source_of("gemma_rms_norm"), tmp_path, "gemma").LigerTestFunction.apply(x, w, 1e-6)
    torch.testing.assert_close(llama, (w.float() * normal.bfloat16().float()).bfloat16(), rtol=0, atol=0)
    torch.testing.assert_close(gemma, (normal * (1 + w.float())).bfloat16(), rtol=0, atol=0)


def test_a_statistic_is_saved_as_one_float_a_row(tmp_path: Path) -> None:
    module = import_source(source_of("llama_rms_norm"), tmp_path, "saved")
    y, rstd = module.llama_rms_norm_forward(torch.randn(3, 5, 64).bfloat16(), torch.ones(64).bfloat16())
    assert (tuple(rstd.shape), rstd.dtype) == ((15,), torch.float32)
    assert y.shape == (3, 5, 64)


def test_gradients_over_rows_are_the_same_bits_each_time(tmp_path: Path) -> None:
    module = import_source(source_of("layer_norm"), tmp_path, "bits")
    gradients = []
    for _ in range(2):
        torch.manual_seed(0)
        values = [torch.randn(37, 64, requires_grad=True), *(torch.randn(64, requires_grad=True) for _ in range(2))]
        module.LigerTestFunction.apply(*values, 1e-6).sum().backward()
        gradients.append([v.grad for v in values])
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


def test_a_weight_of_another_length_is_refused(tmp_path: Path) -> None:
    apply = import_source(source_of("llama_rms_norm"), tmp_path, "length").LigerTestFunction.apply
    with pytest.raises(ValueError, match="w has 32 elements, and a row 64"):
        apply(torch.randn(2, 64), torch.ones(32), 1e-6)


@pytest.mark.parametrize(
    ("code", "inputs", "says"),
    [
        ("def f(x):\n    return x / x.sum()", (InputSpec("x", (8, 64)),), "needed before the rows are done"),
        ("def f(x):\n    return x - x.mean(0, keepdim=True)", (InputSpec("x", (8, 64)),), "aten.sum"),
        ("def f(x):\n    return torch.sort(x, -1)[0] * 2", (InputSpec("x", (8, 64)),), "aten.sort"),
        ("def f(x, s):\n    return (x * s).sum(-1)", (InputSpec("x", (2, 4, 8)), InputSpec("s", (2, 1, 8))), "some of"),
        (
            "def f(x):\n    return torch.softmax(x.view(8, 8, 8), -1)",
            (InputSpec("x", (8, 64)),),
            "has no place in (8, 8, 8)",
        ),
        (
            "def f(x):\n    return x.view(3, 4).softmax(-1).view(12)",
            (InputSpec("x", (12,)),),
            "how elements are numbered",
        ),
    ],
)
def test_what_is_no_row_kernel_is_said(code: str, inputs: tuple[InputSpec, ...], says: str) -> None:
    request = GenerateRequest(Reference(HEADER + code + "\n", "f", inputs=inputs), "op", "LigerOpFunction")
    try:
        result = generate(request)
    except JobError as refused:
        assert refused.failure.kind == "unsupported"
        reason = refused.failure.message
    else:  # tier 3: the kernels are left to be written
        assert not result.complete
        assert len(result.unwritten) == 2
        reason = result.facts.generates_not_because or ""
    assert says in reason


def test_sizes_in_the_graph_become_sizes_of_the_call(tmp_path: Path) -> None:
    """mse divides by rows times columns, and its gradient is twice that: neither is the example's."""
    apply: Any = import_source(source_of("mse"), tmp_path, "mse").LigerTestFunction.apply
    for shape in ((3, 5), (11, 7), (2, 3, 4)):
        x, y = (torch.randn(shape, requires_grad=True) for _ in range(2))
        loss = apply(x, y)
        loss.backward()
        want = torch.nn.functional.mse_loss(x, y)
        torch.testing.assert_close(loss, want)
        torch.testing.assert_close(x.grad, torch.autograd.grad(want, x)[0])


def test_what_divides_by_the_first_dimension_takes_no_other_rank(tmp_path: Path) -> None:
    """ "batchmean" divides by the size of the first dimension, which is the number of rows where there are two."""
    apply = import_source(source_of("kl_div"), tmp_path, "kl_div").LigerTestFunction.apply
    with pytest.raises(ValueError, match="2 dimensions are expected"):
        apply(torch.randn(2, 3, 4), torch.rand(2, 3, 4))


def text_of(code: str, *inputs: InputSpec) -> str:
    reference = Reference(HEADER + code, "f", "f", None, inputs)
    return generate(GenerateRequest(reference, "f", "LigerTestFunction")).ops_source


def test_a_loss_by_labels_reads_a_long_row_once() -> None:
    """What is picked by the label is loaded, and the backward needs no whole row."""
    inputs = InputSpec("x", (8, 64)), InputSpec("label", (8,), "int64", False)
    text = text_of("def f(x, label):\n    return F.cross_entropy(x, label)\n", *inputs)
    long_rows = text.split("def _f_forward_long_rows_kernel(")[1].split("\ndef ")[0]
    assert long_rows.count("for start in range(") == 1
    backward = text.split("def _f_backward_kernel(")[1].split("\ndef ")[0]
    assert "axis=1" not in backward
    assert text.count(".sum()") == 2, "the kept labels are counted once, for the loss and for its backward"


def test_what_is_the_same_along_the_row_is_multiplied_after_the_sum() -> None:
    """So that both sums are one."""
    text = text_of(
        "def f(x, a, b):\n    return (x * a).sum(-1, keepdim=True) + (x * b).sum(-1, keepdim=True) * x\n",
        *(InputSpec("x", (8, 64)), InputSpec("a", (8, 1)), InputSpec("b", (8, 1))),
    )
    forward = text.split("def _f_forward_kernel(")[1].split("\n@triton")[0]
    assert forward.count("tl.sum(") == 1


def test_half_of_a_tanh_and_one_is_a_sigmoid() -> None:
    """In the forward; the gradient needs the tanh for itself as well."""
    text = text_of("def f(x):\n    return F.gelu(x, approximate='tanh')\n", InputSpec("x", (8, 64)))
    forward, backward = text.split("\n@triton.jit\n")[1:3]
    assert "tl.sigmoid(" in forward
    assert " tanh(" not in forward
    assert " tanh(" in backward
