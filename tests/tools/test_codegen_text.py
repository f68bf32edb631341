"""What generated files look like: Liger's style, the author's names, nothing superfluous."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from codegen_zoo import ZOO, generate, reference

from tigon_tools.codegen.generate_job import run
from tigon_tools.codegen.support import unsupported
from tigon_tools.schema.errors import JobError
from tigon_tools.schema.generate import GenerateRequest, GenerateResult
from tigon_tools.schema.reference import InputSpec, Reference
from tigon_tools.schema.wire import from_wire, to_wire
from tigon_tools.trace.graph import trace
from tigon_tools.trace.reference import load

GOLDEN = Path(__file__).parent / "codegen_golden"

# Liger 0.8.5's own settings, from its pyproject.toml.
LIGER_RUFF = """
line-length = 120
target-version = "py310"
[lint]
select = ["E", "F", "I"]
ignore = ["E501", "B006", "E731", "A002", "E203"]
[lint.isort]
known-first-party = ["liger_kernel"]
force-single-line = true
lines-between-types = 1
"""

# What tracing and compilers call values, and nobody else.
TEMPORARY = re.compile(r"\b(tmp|temp|mul|add|sub|div|where|convert_element_type|primals|tangents)_?\d*\b\s*=")


@pytest.fixture(scope="module")
def generated() -> dict[str, GenerateResult]:
    return {name: generate(name) for name in ZOO}


def test_ligers_own_ruff_finds_nothing(generated: dict[str, GenerateResult], tmp_path: Path) -> None:
    (tmp_path / "ruff.toml").write_text(LIGER_RUFF)
    for name, result in generated.items():
        (tmp_path / f"{name}.py").write_text(result.ops_source)
    for arguments in (["check"], ["format", "--check"]):
        command = [sys.executable, "-m", "ruff", *arguments, "--no-cache", str(tmp_path)]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
        assert finished.returncode == 0, finished.stdout + finished.stderr


@pytest.mark.parametrize("name", ZOO)
def test_values_have_names_that_say_what_they_are(name: str, generated: dict[str, GenerateResult]) -> None:
    text = generated[name].ops_source
    assert not TEMPORARY.search(text)
    for line in text.splitlines():
        assert len(line) <= 120, line


@pytest.mark.parametrize("name", ZOO)
def test_no_operation_without_effect(name: str, generated: dict[str, GenerateResult]) -> None:
    text = generated[name].ops_source
    assert not re.search(r"[*] 1(\.0)?\b(?!\.)|\+ 0(\.0)?\b(?!\.)|--|\b1 \* ", text)


@pytest.mark.parametrize("name", ["swiglu", "clamped_glu"])
def test_the_whole_file_reads_as_reviewed(name: str, generated: dict[str, GenerateResult]) -> None:
    """After a change of the generator: read the difference, then write the new text to the file."""
    assert generated[name].ops_source == (GOLDEN / f"{name}.txt").read_text()


def test_names_of_the_reference_are_used() -> None:
    code = (
        "def f(gate, up, alpha: float = 1.702):\n"
        "    activated = gate * torch.sigmoid(gate * alpha)\n"
        "    shifted = up + 1\n"
        "    return activated * shifted"
    )
    text = generate("named", code).ops_source
    assert "activated = " in text
    assert "shifted = " in text
    assert "y = activated * shifted" in text


def test_scalars_stay_arguments_and_keep_their_defaults(generated: dict[str, GenerateResult]) -> None:
    result = generated["clamped_glu"]
    assert result.signature == "gate, up, alpha: float = 1.702, limit: float = 2.0"
    assert result.call_arguments == "gate, up, alpha, limit"
    assert "1.702" not in result.ops_source.split("def clamped_glu_forward")[0]
    assert generated["swish"].signature == "x, alpha: float"
    assert generated["whole_scalar"].signature == "x, n: int = 3"


def test_the_result_names_what_the_file_defines(generated: dict[str, GenerateResult]) -> None:
    for name, result in generated.items():
        defined = {
            node.name for node in ast.parse(result.ops_source).body if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        }
        assert result.exports == ("LigerTestFunction", f"{name}_backward", f"{name}_forward")
        assert set(result.exports) <= defined
        assert result.complete


def test_a_static_argument_is_left_out_and_said(generated: dict[str, GenerateResult]) -> None:
    assert generated["static"].signature == "x"
    assert "squared=True" in generated["static"].ops_source


def test_the_result_survives_the_wire(generated: dict[str, GenerateResult]) -> None:
    result = generated["swiglu"]
    assert from_wire(GenerateResult, json.loads(json.dumps(to_wire(result)))) == result


def test_generating_twice_gives_the_same_text() -> None:
    assert generate("clamped_glu").ops_source == generate("clamped_glu").ops_source


PRODUCT = "import torch\ndef f(x, weight):\n    return x @ weight\n"


@pytest.mark.parametrize(
    ("code", "inputs", "names"),
    [
        ("import torch\ndef f(x):\n    return x * x.t()\n", (InputSpec("x", (8, 8)),), "permute"),
        ("import torch\ndef f(x):\n    return torch.special.i0(x)\n", (InputSpec("x", (3, 8)),), "i0"),
    ],
)
def test_what_cannot_be_generated_is_said_in_a_sentence(code: str, inputs: tuple[InputSpec, ...], names: str) -> None:
    frozen = Reference(code, "f", "snippet", None, inputs)
    sentence = unsupported(trace(load(frozen)))
    assert sentence is not None
    assert names in sentence
    assert sentence.endswith(".")
    with pytest.raises(JobError) as refused:
        run(GenerateRequest(frozen, "operation", "LigerOperationFunction"))
    assert refused.value.failure.kind == "unsupported"
    assert names in refused.value.failure.message
    assert "Liger kernels" in refused.value.failure.next_step


@pytest.mark.parametrize(
    ("code", "inputs", "names"),
    [
        ("import torch\ndef f(x):\n    return torch.cumsum(x, -1)\n", (InputSpec("x", (3, 8)),), "cumsum"),
        (PRODUCT, (InputSpec("x", (3, 8)), InputSpec("weight", (8, 8))), "mm"),
    ],
)
def test_kernels_of_tier_3_are_left_to_be_written(code: str, inputs: tuple[InputSpec, ...], names: str) -> None:
    result = run(GenerateRequest(Reference(code, "f", "snippet", None, inputs), "operation", "LigerOperationFunction"))
    assert not result.complete
    assert [sentence.split()[0] for sentence in result.unwritten] == ["operation_forward", "operation_backward"]
    assert names in result.unwritten[0]
    assert names in (result.facts.generates_not_because or "")
    compile(result.ops_source, "operation.py", "exec")


def test_what_can_be_generated_is_not_refused() -> None:
    assert unsupported(trace(load(reference("clamped_glu")))) is None
