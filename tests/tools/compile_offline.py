"""Compile the kernels of generated files for an H200, on a machine without one; run as a program.

One line out for each: the kernel's name, the sizes that are 1, bytes of machine code.

Apart from the tests' process: Triton's interpreter, once active, is for good.

    python compile_offline.py FOLDER FILE...
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Collection
from pathlib import Path
from types import ModuleType

from triton import compile as compile_kernel
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

TARGET = GPUTarget("cuda", 90, 32)
CONSTANTS = {"BLOCK_ROWS": 2, "BLOCK_SIZE": 1024, "NUM_STAGES": 3, "READ_TWICE": True}
SIZES = ("n_rows", "n_cols", "n")
FLOAT32_POINTERS = ("partial", "rows", "rsqrt", "rstd", "mean", "max", "log", "lse", "sum")
"""Parts of the names of what is kept in float32; other tensors are bfloat16 here."""


def signature(kernel: JITFunction[object], constants: Collection[str]) -> dict[str, str]:
    """Types as a launch with bfloat16 tensors gives them."""
    types = {}
    for name in kernel.arg_names:
        if name in constants:
            types[name] = "constexpr"
        elif name.endswith("_ptr"):
            whole = {"label_ptr": "*i64", "mask_ptr": "*i1", "index_ptr": "*i64"}.get(name)
            types[name] = whole or ("*fp32" if any(part in name for part in FLOAT32_POINTERS) else "*bf16")
        else:
            types[name] = "i32" if name.endswith("_stride") or name in SIZES else "fp32"
    return types


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compiled(kernel: JITFunction[object], ones: Collection[str]) -> int:
    """Bytes of machine code; ones: sizes that are 1, which makes a constant of them."""
    known = {**{n: v for n, v in CONSTANTS.items() if n in kernel.arg_names}, **dict.fromkeys(ones, 1)}
    constants = {(kernel.arg_names.index(name),): value for name, value in known.items()}
    built = compile_kernel(ASTSource(kernel, signature(kernel, known), constants), target=TARGET)
    return len(built.asm["cubin"])


def main() -> None:
    warnings.simplefilter("ignore")
    for file in sys.argv[1:]:
        for name, kernel in vars(loaded(Path(file))).items():
            if isinstance(kernel, JITFunction):
                sizes = [size for size in SIZES if size in kernel.arg_names]
                for ones in ([], sizes):
                    print(name, ",".join(ones) or "-", compiled(kernel, ones))


if __name__ == "__main__":
    main()
