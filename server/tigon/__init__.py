"""Tigon: an MCP server that writes, verifies and gates Triton kernels for Liger-Kernel."""

__version__ = "0.1.0"
