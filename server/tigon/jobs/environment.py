"""What of the server's environment a job gets to see: an allow-list, and never a secret."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

_NAMES = frozenset(
    "PATH HOME LANG LANGUAGE TMPDIR TEMP TMP TZ USER LOGNAME SHELL TERM LD_LIBRARY_PATH DYLD_LIBRARY_PATH "
    "VIRTUAL_ENV CONDA_PREFIX XDG_CACHE_HOME SYSTEMROOT HF_HOME HF_HUB_OFFLINE TRANSFORMERS_OFFLINE "
    "HF_DATASETS_OFFLINE COVERAGE_PROCESS_START CC CXX CPATH C_INCLUDE_PATH LIBRARY_PATH".split()
)
"""The last line's compilers and their paths: Triton builds a launcher for each kernel with them."""

_PREFIXES = (
    "LC_ PYTHON CUDA NVIDIA_ HIP_ ROCR_ ROCM_ HSA_ TRITON_ TORCH PYTORCH_ OMP_ MKL_ KMP_ GOMP_ OPENBLAS_".split()
)

_SECRET = re.compile(r"TOKEN|KEY|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)


def job_environment(environment: Mapping[str, str], tools: Path | None) -> dict[str, str]:
    """The part of an environment that a job gets.

    tools: goes in front of PYTHONPATH; None where `tigon_tools` is importable anyway.
    """
    kept = {
        name: value
        for name, value in environment.items()
        if (name.upper() in _NAMES or name.upper().startswith(tuple(_PREFIXES))) and not _SECRET.search(name)
    }
    paths = [*([str(tools)] if tools else []), *filter(None, [kept.get("PYTHONPATH")])]
    if paths:
        kept["PYTHONPATH"] = os.pathsep.join(paths)
    kept["PYTHONDONTWRITEBYTECODE"] = "1"  # nothing is left in the author's checkout
    return kept
