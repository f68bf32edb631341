"""Module, unit test and benchmark as they are rendered: valid, in Liger's style, and complete."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tigon.workspace.layout import Workspace
from tigon.workspace.plan import plan_files
from tigon.workspace.render import KernelNames, render_benchmark, render_module, render_unit_test
from tigon.workspace.style import check_style, format_source
from tigon.workspace.write import apply_plan
from tigon_tools.codegen.generate_job import run as generate
from tigon_tools.schema.generate import GenerateRequest
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
    "two": ("def two(x, limit: float = 2.0):\n    low = x.clamp(max=limit)\n    return low, low * x\n", None),
    "masked": (
        "def masked(x, keep):\n    return torch.where(keep, x * x, 0.0)\n",
        (InputSpec("x", (4, 8)), InputSpec("keep", (4, 8), "bool")),
    ),
    "frozen": ("def frozen(x, y):\n    return x * y.detach()\n", (InputSpec("x", (4, 8)), InputSpec("y", (4, 8)))),
    # x alone is used; PyTorch's own name for an input, and settings that modules have a method of the name for
    "unused": ("def unused(x, y):\n    return x * 2\n", (InputSpec("x", (4, 8)), InputSpec("y", (4, 8)))),
    "taken": (
        "def taken(input, shape, type: float = 1.5, n_cols: float = 0.5):\n"
        "    layer = torch.tanh(type * input) * shape\n    return layer, n_cols * layer\n",
        (InputSpec("input", (4, 8)), InputSpec("shape", (4, 8))),
    ),
    "scale": ("def scale(x, scale):\n    return x * scale\n", (InputSpec("x", (4, 8)), InputSpec("scale", (4, 8)))),
    "flags": ("def flags(x):\n    return x * 2, x > 0.5\n", None),
    "normed": (
        "class normed(torch.nn.Module):\n    def __init__(self, hidden: int = 8, eps: float = 1e-5):\n"
        "        super().__init__()\n        self.weight = torch.nn.Parameter(torch.ones(hidden))\n        self.eps = eps\n\n"
        "    def forward(self, x):\n"
        "        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight\n",
        (InputSpec("x", (2, 4, 8)),),
    ),
    "labelled": (
        "def labelled(x, label):\n    return F.cross_entropy(x, label)\n",
        (InputSpec("x", (4, 8)), InputSpec("label", (4,), "int64", False)),
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


def test_the_module_says_what_it_returns_and_not_what_it_keeps(pristine_liger: Path) -> None:
    """The backward of a maximum keeps the column that it is in, under the name of an op."""
    reference = Reference(HEADER + "def largest(x):\n    return x.max(-1)[0]\n", "largest")
    facts = trace_reference(reference)[1]
    kept = [symbol for symbol in facts.saved_tensors if symbol in facts.forward_formulas]
    assert kept
    text = render_module(KernelNames("largest", "LigerLargestFunction", "LigerLargest", "liger_largest"), facts)
    assert "Y = max(x, -1)[0]" in text
    assert not any(f"{symbol} =" in text for symbol in kept)


def test_a_setting_replaces_nothing_of_the_module(pristine_liger: Path) -> None:
    module = rendered("taken", pristine_liger)["src/liger_kernel/transformers/taken.py"]
    assert "def __init__(self, type: float = 1.5, n_cols: float = 0.5):" in module
    assert "self.type_value = type" in module
    assert "LigerTakenFunction.apply(input, shape, self.type_value, self.n_cols)" in module


def test_a_dotted_reference_is_imported_not_copied(pristine_liger: Path) -> None:
    reference = Reference("", "mish", "torch.nn.functional:mish", "torch.nn.functional")
    facts = trace_reference(reference)[1]
    text = render_unit_test(KernelNames("mish", "LigerMishFunction", "LigerMish", "liger_mish"), facts, reference)
    assert "from torch.nn.functional import mish" in format_source(
        text, "test/transformers/test_mish.py", pristine_liger
    )


def scaffolded(names: list[str], root: Path) -> list[str]:
    """The whole plan of each reference, with generated kernels; returns the unit tests' paths."""
    tests = []
    for name in names:
        code, inputs = REFERENCES[name]
        reference = Reference(HEADER + code, name, inputs=inputs)
        title = f"Liger{name.title()}"
        generated = generate(GenerateRequest(reference, name, f"{title}Function"), lambda line, share: None)
        kernel = KernelNames(name, f"{title}Function", title, f"liger_{name}")
        apply_plan(root, plan_files(Workspace.open(root), kernel, generated, reference))
        tests.append(f"test/transformers/test_{name}.py")
    return tests


def run_tests(root: Path, tests: list[str]) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tigon_tools.interpreter.pytest_plugin",
        "-q",
        "-o",
        "log_cli=false",
    ]
    return subprocess.run([*command, *tests], cwd=root, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
def test_rendered_tests_pass_on_generated_kernels_and_fail_on_a_wrong_one(liger_workspace: Path) -> None:
    """Scalars between tensors, outputs without a gradient, inputs without one, broadcast ones."""
    tests = scaffolded(list(REFERENCES), liger_workspace)
    done = run_tests(liger_workspace, tests)
    assert done.returncode == 0, done.stdout[-3000:]

    ops = liger_workspace / "src/liger_kernel/ops/square.py"
    text = ops.read_text()
    for right, wrong in (
        ("    y = x * x\n", "    y = x * x * 1.001\n"),
        ("    dx = 2 * dy * x\n\n", "    dx = 2.001 * dy * x\n\n"),
    ):
        assert right in text, text
        ops.write_text(text.replace(right, wrong, 1))
        assert run_tests(liger_workspace, ["test/transformers/test_square.py"]).returncode == 1


@pytest.mark.slow
def test_benchmark_scripts_run_both_providers_on_the_same_inputs(liger_workspace: Path) -> None:
    """Imported beside Liger's own utilities. Nothing is timed without a GPU."""
    scaffolded(list(REFERENCES), liger_workspace)
    script = (
        "import sys, importlib\n"
        "from tigon_tools.interpreter import activate; activate()\n"
        "import torch\nfrom utils import SingleBenchmarkRunInput\n"
        "for name in sys.argv[1:]:\n"
        "    script, results = importlib.import_module(f'benchmark_{name}'), []\n"
        "    for provider in ('torch', 'liger'):\n"
        "        run = SingleBenchmarkRunInput(x=8, kernel_provider=provider, kernel_operation_mode='full',\n"
        "            extra_benchmark_config={'hidden_size': 16, 'dtype': torch.float32})\n"
        "        torch.manual_seed(0)\n"
        "        *inputs, layer = getattr(script, f'setup_{name}')(run)\n"
        "        forward = getattr(script, f'forward_{name}', lambda x, layer: layer(x))\n"
        "        y = forward(*inputs, layer)\n"
        "        y.backward(torch.ones_like(y))\n"
        "        results.append((y.detach(), inputs[0].grad))\n"
        "    assert results[0][1] is not None, name\n"
        "    torch.testing.assert_close(results[0], results[1])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *REFERENCES],
        cwd=liger_workspace / "benchmark" / "scripts",
        env={
            **os.environ,
            "PYTHONPATH": f"{liger_workspace / 'src'}{os.pathsep}{liger_workspace / 'benchmark/scripts'}",
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_style_problems_that_were_there_are_not_the_tasks(liger_workspace: Path) -> None:
    path = "src/liger_kernel/ops/relu_squared.py"
    before = Workspace.open(liger_workspace).read(path)
    old = before.replace("import torch\n", "import os\nimport torch\n", 1)
    (liger_workspace / path).write_text(old + "\n\nimport sys\n")
    problems = check_style([path], liger_workspace, {path: old})
    assert any("sys" in problem for problem in problems)
    assert not any("`os`" in problem for problem in problems)
