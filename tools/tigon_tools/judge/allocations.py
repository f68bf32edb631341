"""What the candidate allocates: between guard zones, and poisoned where it promises no values.

Then what a kernel leaves unwritten shows, and so does what it writes past the end of its output.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from tigon_tools.judge.layouts import Guarded, guarded

_FUNCTIONS = (
    "empty", "empty_like", "empty_strided", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like",
)  # fmt: skip
_METHODS = ("new_empty", "new_empty_strided", "new_zeros", "new_ones", "new_full")
_COPIES = ("clone", "contiguous")
"""Copies that kernels write into: Liger stores gradients where it keeps its inputs."""


@dataclass
class Allocations:
    """Replaces torch's allocating functions once, before the candidate binds them; guards only while active.

    made: what was allocated since `active` was entered.
    """

    made: list[Guarded] = field(default_factory=list)
    _active: bool = False

    def install(self) -> None:
        """Replace them for good; this process is the candidate's."""
        for name in _FUNCTIONS:
            setattr(torch, name, self._guarding(getattr(torch, name), poisoned="empty" in name))
        for name in _METHODS:
            setattr(torch.Tensor, name, self._guarding(getattr(torch.Tensor, name), poisoned="empty" in name))
        for name in _COPIES:
            setattr(torch.Tensor, name, self._guarding_copy(getattr(torch.Tensor, name)))

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Guard what is allocated from here on."""
        self.made = []
        self._active = True
        try:
            yield
        finally:
            self._active = False

    def _guarding(self, original: Callable[..., Any], *, poisoned: bool) -> Callable[..., Any]:
        def allocate(*args: Any, **kwargs: Any) -> Any:
            plain = original(*args, **kwargs)
            if not self._guards(plain) or "out" in kwargs:
                return plain
            return self._moved(plain, poisoned=poisoned).requires_grad_(plain.requires_grad)

        return allocate

    def _guarding_copy(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def copy(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            plain = original(tensor, *args, **kwargs)
            # A copy that autograd follows has to stay what autograd made.
            if plain is tensor or not self._guards(plain) or plain.requires_grad:
                return plain
            if plain.data_ptr() == tensor.data_ptr():
                return plain
            return self._moved(plain, poisoned=False)

        return copy

    def _guards(self, plain: Any) -> bool:
        # The interpreter makes empty tensors of shape (0,) as handles on a storage.
        return (
            self._active
            and type(plain) is torch.Tensor
            and plain.layout is torch.strided
            and plain.device.type != "meta"
            and tuple(plain.shape) != (0,)
        )

    def _moved(self, plain: torch.Tensor, *, poisoned: bool) -> torch.Tensor:
        block = guarded(tuple(plain.shape), tuple(plain.stride()), plain.dtype, str(plain.device))
        if not poisoned:
            block.tensor.copy_(plain.detach())
        self.made.append(block)
        return block.tensor
