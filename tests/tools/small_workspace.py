"""A workspace in Liger's layout with one kernel, small enough to import in a blink."""

from __future__ import annotations

from pathlib import Path

OPS = """\
import triton
import triton.language as tl
import torch


@triton.jit
def _double_kernel(Y, X, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(X + offsets, mask=offsets < n)
    tl.store(Y + offsets, x * 2, mask=offsets < n)


class LigerDoubleFunction:
    @staticmethod
    def apply(x):
        y = torch.empty_like(x)
        _double_kernel[(1,)](y, x, x.numel(), BLOCK=16)
        return y
"""

FILES = {
    "src/liger_kernel/__init__.py": "",
    "src/liger_kernel/ops/__init__.py": "from liger_kernel.ops.double import LigerDoubleFunction  # noqa: F401\n",
    "src/liger_kernel/ops/double.py": OPS,
    "test/__init__.py": "",
    "test/utils.py": "def three():\n    return 3\n",
    # As Liger's: settings that print while tests run, and one for a plugin that may not be there.
    "pyproject.toml": '[tool.pytest.ini_options]\nlog_cli = true\nasyncio_mode = "auto"\npythonpath = ["src", "."]\n',
}


def write_workspace(root: Path, **files: str) -> Path:
    """Files are given by path, with `__` for `/`, without `.py`, which is added."""
    named = {f"{name.replace('__', '/')}.py": text for name, text in files.items()}
    for name, text in {**FILES, **named}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def snapshot(root: Path) -> dict[str, bytes]:
    """Every file below `root`."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
