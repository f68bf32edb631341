"""Act: lower a traced graph to a Liger-style Triton file."""
