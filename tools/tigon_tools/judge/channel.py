"""Tensors over a pipe as bytes. Nothing that comes from the candidate is ever unpickled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

import torch

LONGEST = 2**31 - 1
"""Bytes of one part; a case has a few megabytes."""


def send(connection: Connection, header: Mapping[str, Any], tensors: list[torch.Tensor]) -> None:
    """A JSON header, then the bytes of each tensor."""
    described = [{"shape": list(t.shape), "dtype": str(t.dtype)[6:]} for t in tensors]
    connection.send_bytes(json.dumps({**header, "tensors": described}).encode())
    for tensor in tensors:
        if tensor.numel():
            connection.send_bytes(raw(tensor).numpy().tobytes())


def raw(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor's elements as bytes. Copied: one element with a stride of 2 counts as contiguous, and is no bytes."""
    flat = tensor.detach().cpu().reshape(-1).clone(memory_format=torch.contiguous_format)
    return flat.as_strided((flat.numel(),), (1,)).view(torch.uint8)


def receive(connection: Connection) -> tuple[dict[str, Any], list[torch.Tensor]]:
    """What `send` sent.

    Raises:
        EOFError: the other side is gone.
        ValueError: it sent something else.
    """
    header = json.loads(connection.recv_bytes(LONGEST))
    tensors = []
    for described in header.pop("tensors"):
        dtype = getattr(torch, described["dtype"])
        shape = tuple(int(size) for size in described["shape"])
        count = torch.Size(shape).numel()
        if not count:
            tensors.append(torch.empty(shape, dtype=dtype))
            continue
        data = bytearray(connection.recv_bytes(LONGEST))
        tensor = torch.frombuffer(data, dtype=dtype)
        if tensor.numel() != count:
            raise ValueError("a tensor of another size than announced")
        tensors.append(tensor.reshape(shape))
    return header, tensors
