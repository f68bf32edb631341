"""Programs that run where torch, Triton and Liger are: tracing, code generation, judging, measuring.

Nothing here imports `tigon`, pydantic or mcp, so the folder works as it is on any GPU box.
"""

__version__ = "0.1.0"
