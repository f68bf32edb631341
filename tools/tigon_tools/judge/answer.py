"""What the candidate handed over for one case, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from tigon_tools.judge.channel import raw

Overrun = tuple[str, int]
"""Where outside a tensor something was written ("past the end"), and how far or how many elements."""


@dataclass(frozen=True)
class Answer:
    """outputs: before the backward; `outputs_change`: whether the backward changed them.

    inputs, upstream: as they are after the backward. aliases: outputs that share memory with an input.
    launches: of Triton kernels, in the forward and in the backward.
    """

    outputs: list[torch.Tensor]
    gradients: dict[str, torch.Tensor | None]
    inputs: dict[str, torch.Tensor]
    upstream: list[torch.Tensor]
    outputs_change: bool
    overruns: list[Overrun]
    aliases: bool
    launches: tuple[int, int]

    @classmethod
    def read(cls, header: dict[str, Any], tensors: list[torch.Tensor], wants: list[str], names: list[str]) -> Answer:
        """From the process's message.

        wants: names of inputs that a gradient was asked for. names: of all tensor inputs.
        """
        rest = iter(tensors)
        outputs = [next(rest) for _ in range(header["outputs"])]
        gradients = {
            name: next(rest) if there else None for name, there in zip(wants, header["gradients"], strict=True)
        }
        inputs = {name: next(rest) for name in names}
        upstream = [next(rest) for _ in range(header["upstream"])]
        overruns = [(str(o[0]), int(o[1])) for o in header["overrun"] if o is not None]
        return cls(
            outputs,
            gradients,
            inputs,
            upstream,
            any(header["outputs_change"]),
            overruns,
            any(header["aliases"]),
            (int(header["launches"][0]), int(header["launches"][1])),
        )

    @property
    def results(self) -> list[torch.Tensor]:
        """Outputs and gradients that exist."""
        return [*self.outputs, *(g for g in self.gradients.values() if g is not None)]


def same_bits(x: torch.Tensor, y: torch.Tensor) -> bool:
    """Shape, dtype and every bit; NaN equals itself."""
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    return x.numel() == 0 or torch.equal(raw(x), raw(y))
