"""How many Triton kernels the candidate launches, on a GPU and in the interpreter."""

from __future__ import annotations

import functools
import importlib.util
from dataclasses import dataclass
from typing import Any


@dataclass
class Launches:
    """count: since `install`, in this process."""

    count: int = 0

    def install(self) -> None:
        """Count from here on; this process is the candidate's. Without Triton there is nothing to count."""
        if importlib.util.find_spec("triton") is None:
            return
        from triton.runtime.interpreter import GridExecutor
        from triton.runtime.jit import JITFunction

        self._count_calls(GridExecutor, "__call__")
        self._count_calls(JITFunction, "run")

    def _count_calls(self, kind: type, name: str) -> None:
        original = getattr(kind, name)

        @functools.wraps(original)
        def counted(*args: Any, **kwargs: Any) -> Any:
            if not kwargs.get("warmup"):
                self.count += 1
            return original(*args, **kwargs)

        setattr(kind, name, counted)
