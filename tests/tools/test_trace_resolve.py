"""From what an assistant names to a frozen reference, and what is refused on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tigon_tools.schema.errors import JobError
from tigon_tools.schema.reference import InputSpec, Reference, ResolveRequest
from tigon_tools.trace.reference import load
from tigon_tools.trace.resolve_job import run
from tigon_tools.trace.trace_job import trace_reference

CODE = "import torch\n\n\ndef square(x):\n    return x * x\n"


def resolve(source: str, root: Path, entry: str | None = None) -> Reference:
    return run(ResolveRequest(source, str(root), entry)).reference


def test_code_with_one_function_needs_no_entry(tmp_path: Path) -> None:
    assert resolve(CODE, tmp_path).entry == "square"


def test_a_file_is_frozen_as_it_is_now(tmp_path: Path) -> None:
    file = tmp_path / "ref.py"
    file.write_text(CODE)
    reference = resolve("ref.py:square", tmp_path)
    file.write_text("raise SystemExit")
    assert reference.code == CODE
    assert trace_reference(reference)[1].tier == 1


@pytest.mark.parametrize("name", ["torch.nn.functional:mish", "torch.nn.functional:silu", "torch:tanh"])
def test_a_function_of_torch_is_named_by_its_module(name: str, tmp_path: Path) -> None:
    _, facts = trace_reference(resolve(name, tmp_path))
    assert facts.tier == 1
    assert facts.generates


def test_a_module_that_imports_relatively(tmp_path: Path) -> None:
    package = tmp_path / "some_activations"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "base.py").write_text("import torch\n\ndef gate(x):\n    return torch.sigmoid(x)\n")
    (package / "swish.py").write_text("from .base import gate\n\ndef swish(x):\n    return x * gate(x)\n")
    reference = resolve("some_activations.swish:swish", tmp_path)
    assert reference.module == "some_activations.swish"
    assert trace_reference(reference)[1].tier == 1


@pytest.mark.parametrize(
    ("source", "says", "line"),
    [
        ("import numpy as np\n\ndef f(x):\n    return np.tanh(x)\n", "not torch-only: line 1 imports 'numpy'", 1),
        ("import torch\n\ndef f(x):\n    from scipy import special\n    return x\n", "line 4 imports 'scipy'", 4),
        ("def f(x)\n    return x\n", "not valid Python", 1),
        ("def f(x):\n    return x\n\ndef g(x):\n    return x\n", "defines f, g: which one", None),
        ("def f(x):\n    return '\0'\n", "not valid Python", None),
        ("x = 3\ny = x\n", "no function and no nn.Module", None),
        ("missing.py:f", "missing.py cannot be read", None),
        ("no_such_module_here:f", "cannot be imported", None),
        ("torch.nn.functional:no_such", "has no 'no_such'", None),
        ("relu squared of x", "neither a path", None),
    ],
)
def test_what_is_not_a_reference_is_refused(source: str, says: str, line: int | None, tmp_path: Path) -> None:
    with pytest.raises(JobError) as problem:
        resolve(source, tmp_path)
    assert problem.value.failure.kind == "bad_reference"
    assert says in problem.value.failure.message
    assert problem.value.failure.line == line


@pytest.mark.parametrize(
    ("code", "inputs", "says"),
    [
        ("def f(x):\n    return x", (InputSpec("y", (2,)),), "inputs name 'y', which f does not take"),
        ("def f(x):\n    return x", (InputSpec("x", (2,)), InputSpec("x", (2,))), "same argument twice"),
        ("def f(x):\n    return x", (InputSpec("x", (2,), "float99"),), "'float99'"),
        ("def f(*xs):\n    return xs", None, "takes *xs"),
        ("f = 3", None, "neither a function nor an nn.Module"),
        ("import torch\nclass f(torch.nn.Module):\n    def __init__(self, size): ...", None, "without arguments"),
        ("raise ValueError('no')\ndef f(x): ...", None, "line 1"),
        ("def f(x): ...\ndef example_inputs():\n    return 1 / 0", None, "example_inputs() of snippet fails"),
        (
            "import torch\nclass f(torch.nn.Module):\n    def __init__(self):\n        raise ValueError('no')",
            None,
            "f() of snippet fails: ValueError: no (line 4)",
        ),
    ],
)
def test_inputs_that_do_not_fit_are_refused(code: str, inputs: tuple[InputSpec, ...] | None, says: str) -> None:
    with pytest.raises(JobError) as problem:
        load(Reference(code, "f", inputs=inputs))
    assert says in problem.value.failure.message


def test_inputs_come_from_example_inputs_beside_the_reference() -> None:
    code = CODE + "\n\ndef example_inputs():\n    return (torch.randn(3, 5),)\n"
    loaded = load(Reference(code, "square"))
    assert [a.shape for a in loaded.arguments] == [(3, 5)]
    assert not loaded.notes


def test_without_inputs_shapes_are_assumed_and_said_so() -> None:
    loaded = load(Reference(CODE, "square"))
    assert any("assumed" in note for note in loaded.notes)


def test_an_argument_that_is_not_listed_is_a_scalar() -> None:
    loaded = load(Reference("def f(x, alpha):\n    return x * alpha", "f", inputs=(InputSpec("x", (2, 3)),)))
    assert [(a.name, a.kind, a.required) for a in loaded.arguments] == [
        ("x", "tensor", True),
        ("alpha", "scalar", True),
    ]
