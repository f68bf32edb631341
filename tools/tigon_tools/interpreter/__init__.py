"""Triton's interpreter, repaired: kernels mean on a CPU what they mean on a GPU, or are refused."""
