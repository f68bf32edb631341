"""pytest plugin: run a checkout's tests in the repaired interpreter.

    python -m pytest -p tigon_tools.interpreter.pytest_plugin test/transformers

`-p` plugins are imported before any conftest or test, so kernels are defined after activation. What the
tests skip on a CPU stays skipped.
"""

from tigon_tools.interpreter.activation import activate

activate()
