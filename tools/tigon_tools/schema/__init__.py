"""What a job takes and returns: dataclasses of the standard library, JSON on the wire.

The only part of `tigon_tools` that the server imports. Nothing here may import torch.
"""
