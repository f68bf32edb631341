"""A pytest plugin: scaffolded Functions in the place of Liger's, before Liger's tests import them.

TIGON_PUT_IN_PLACE: "LigerSiLUMulFunction=liger_kernel.ops.silu_mul:LigerSiluMulFunction", comma-separated.
"""

from __future__ import annotations

import importlib
import os
import sys


def pytest_configure() -> None:
    ops = importlib.import_module("liger_kernel.ops")
    importlib.import_module("liger_kernel.transformers.functional")
    for entry in os.environ["TIGON_PUT_IN_PLACE"].split(","):
        name, _, scaffolded = entry.partition("=")
        module, _, attribute = scaffolded.partition(":")
        function = getattr(importlib.import_module(module), attribute)
        original = getattr(ops, name)
        assert function is not original
        for place in [m for n, m in sys.modules.items() if n.startswith("liger_kernel")]:
            if vars(place).get(name) is original:
                setattr(place, name, function)
