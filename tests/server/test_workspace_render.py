"""Module, unit test and benchmark as they are rendered: valid, in Liger's style, and complete."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tigon.workspace.layout import Workspace
from tigon.workspace.render import KernelNames, render_benchmark, render_module, render_unit_test
from tigon.workspace.style import check_style, format_source
from tigon_tools.schema.reference import InputSpec, Reference
from tigon_tools.trace.trace_job import trace_reference

HEADER = (
    '"""A reference."""\n\nfrom __future__ import annotations\n\nimport torch\nimport torch.nn.functional as F\n\n\n'
)
REFERENCES = {
    "square": ("def square(x):\n    return x * x\n", None),
    "gated": ("def gated(a, b, scale: float = 1.5):\n    return torch.tanh(scale * a) * b\n", None),
    "middle": (
        "def middle(a, scale: float, b):\n    return a * scale + b\n",
        (InputSpec("a", (4, 8)), InputSpec("b", (4, 8))),
    ),
    "two": ("def two(x, limit: float = 2.0):\n    y = x.clamp(max=limit)\n    return y, y * x\n", None),
    "masked": (
        "def masked(x, keep):\n    return torch.where(keep, x * x, 0.0)\n",
        (InputSpec("x", (4, 8)), InputSpec("keep", (4, 8), "bool")),
    ),
    "weighted": (
        "def weighted(x, w):\n    return F.silu(x) * w\n",
        (InputSpec("x", (2, 4, 8)), InputSpec("w", (8,), "float32", False)),
    ),
}


def rendered(name: str, root: Path) -> dict[str, str]:
    code, inputs = REFERENCES[name]
    reference = Reference(HEADER + code, name, inputs=inputs)
    facts = trace_reference(reference)[1]
    names = KernelNames(name, f"Liger{name.title()}Function", f"Liger{name.title()}", f"liger_{name}")
    files = {
        f"src/liger_kernel/transformers/{name}.py": render_module(names, facts),
        f"test/transformers/test_{name}.py": render_unit_test(names, facts, reference),
        f"benchmark/scripts/benchmark_{name}.py": render_benchmark(names, facts, reference),
    }
    return {path: format_source(text, path, root) for path, text in files.items()}


@pytest.mark.parametrize("name", REFERENCES)
def test_what_is_rendered_passes_ligers_style(name: str, liger_workspace: Path) -> None:
    files = rendered(name, liger_workspace)
    for path, text in files.items():
        ast.parse(text)
        (liger_workspace / path).write_text(text)
        assert "from __future__" not in text
        assert max(len(line) for line in text.splitlines()) <= 120
    assert check_style(list(files), liger_workspace, {}) == []


def test_the_module_keeps_scalars_and_passes_tensors_in_the_references_order(pristine_liger: Path) -> None:
    module = rendered("middle", pristine_liger)["src/liger_kernel/transformers/middle.py"]
    assert "def __init__(self, scale: float):" in module
    assert "def forward(self, a, b):" in module
    assert "LigerMiddleFunction.apply(a, self.scale, b)" in module
    assert 'return f"scale={self.scale}"' in module


def test_a_dotted_reference_is_imported_not_copied(pristine_liger: Path) -> None:
    reference = Reference("", "mish", "torch.nn.functional:mish", "torch.nn.functional")
    facts = trace_reference(reference)[1]
    text = render_unit_test(KernelNames("mish", "LigerMishFunction", "LigerMish", "liger_mish"), facts, reference)
    assert "from torch.nn.functional import mish" in format_source(
        text, "test/transformers/test_mish.py", pristine_liger
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["square", "two"])
def test_the_benchmark_script_builds_its_inputs(name: str, liger_workspace: Path) -> None:
    """Imported beside Liger's own utilities; the torch layer runs. Nothing is timed without a GPU."""
    path = f"benchmark/scripts/benchmark_{name}.py"
    (liger_workspace / path).write_text(rendered(name, liger_workspace)[path])
    script = (
        "import sys, types, torch\n"
        "import liger_kernel.transformers\n"
        f"liger_kernel.transformers.Liger{name.title()} = type('L', (torch.nn.Module,), {{}})\n"
        f"import benchmark_{name} as b\nfrom utils import SingleBenchmarkRunInput\n"
        "run = SingleBenchmarkRunInput(x=8, kernel_provider='torch', kernel_operation_mode='full',\n"
        "    extra_benchmark_config={'hidden_size': 16, 'dtype': torch.float32})\n"
        f"out = b.setup_{name}(run)\n"
        f"y = b.forward_{name}(*out) if hasattr(b, 'forward_{name}') else out[1](out[0])\n"
        "y.backward(torch.randn_like(y))\nassert out[0].grad is not None\nprint(tuple(y.shape))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=liger_workspace / "benchmark" / "scripts",
        env={
            "PYTHONPATH": f"{liger_workspace / 'src'}:{liger_workspace / 'benchmark' / 'scripts'}",
            "PATH": "/usr/bin:/bin",
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "(8, 16)"


def test_style_problems_that_were_there_are_not_the_tasks(liger_workspace: Path) -> None:
    path = "src/liger_kernel/ops/relu_squared.py"
    before = Workspace.open(liger_workspace).read(path)
    old = before.replace("import torch\n", "import os\nimport torch\n", 1)
    (liger_workspace / path).write_text(old + "\n\nimport sys\n")
    problems = check_style([path], liger_workspace, {path: old})
    assert any("sys" in problem for problem in problems)
    assert not any("`os`" in problem for problem in problems)
