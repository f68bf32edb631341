"""Activation changes a process for good, so each case has a process of its own."""

import subprocess
import sys
import textwrap

import pytest

KERNEL = """
import torch, triton, triton.language as tl

@triton.jit
def kernel(x_ptr, z_ptr, SIZE: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, SIZE))
    tl.store(z_ptr, tl.sum(x) + x.max(axis=0) + tl.cdiv(SIZE, 3) + tl.zeros([1], tl.float32).sum())
    tl.store(z_ptr + 1, tl.sum(tl.rand(3, tl.arange(0, 1))))

x, z = torch.arange(8.0), torch.zeros(2)
kernel[(1,)](x, z, SIZE=8)
assert z[0].item() == 28 + 7 + 3, z
assert 0 <= z[1].item() < 1
"""


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    import os

    inherited = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**inherited, **environment}, check=False
    )


ACTIVATE = "from tigon_tools.interpreter import activate\nactivate()\n"


@pytest.mark.parametrize(
    ("before", "environment"),
    [
        ("", {}),
        ("", {"TRITON_INTERPRET": "1"}),
        ("import triton, triton.language as tl\n", {}),
        ("import torch, triton.runtime.interpreter\n", {}),
    ],
    ids=["nothing", "variable set", "triton", "its interpreter"],
)
def test_kernels_run_whatever_was_imported_before(before, environment, tmp_path):
    script = tmp_path / "script.py"  # the interpreter reads a kernel's source from its file
    script.write_text(before + ACTIVATE + KERNEL)

    finished = run(f"import runpy; runpy.run_path({str(script)!r})", **environment)

    assert finished.returncode == 0, finished.stderr


def test_a_second_activation_changes_nothing():
    code = ACTIVATE + textwrap.dedent("""
        from tigon_tools.interpreter import is_active
        from triton.runtime.interpreter import InterpreterBuilder
        first = dict(vars(InterpreterBuilder))
        activate()
        assert is_active() and dict(vars(InterpreterBuilder)) == first
    """)

    finished = run(code)

    assert finished.returncode == 0, finished.stderr


def test_importing_the_package_imports_neither_torch_nor_triton():
    finished = run(
        "import sys, tigon_tools.interpreter as i\n"
        "assert not i.is_active() and '3.9' in i.supported_versions\n"
        "assert not {'torch', 'triton', 'numpy'} & set(sys.modules)"
    )

    assert finished.returncode == 0, finished.stderr


def test_a_triton_without_what_has_to_be_repaired_is_named():
    finished = run("import triton.runtime.interpreter as i\ndel i.InterpreterBuilder.create_dot\n" + ACTIVATE)

    assert "UnknownTriton: Triton " in finished.stderr
    assert "no `create_dot` in `InterpreterBuilder`" in finished.stderr
    assert "Install a Triton from 3.6 to 3.9" in finished.stderr


def test_an_old_triton_is_refused():
    finished = run("import triton\ntriton.__version__ = '3.5.1'\n" + ACTIVATE)

    assert "UnknownTriton: Triton 3.5.1 is older than 3.6" in finished.stderr


def test_the_pytest_plugin_activates_before_tests_are_collected(tmp_path):
    test = tmp_path / "test_kernel.py"
    test.write_text(KERNEL + "\ndef test_active():\n    assert tl.sum is not None\n")

    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tigon_tools.interpreter.pytest_plugin", str(test)],
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip

    assert finished.returncode == 0, finished.stdout
