"""Scaffolded row kernels under the signatures of Liger's Functions, options included.

A Liger Function takes options (an offset, a casting mode, a missing bias) that are references of their own here.
Each adaptor passes on; none computes.
"""

from __future__ import annotations

from typing import Any

import torch
from liger_kernel.ops.bare_norm import LigerBareNormFunction
from liger_kernel.ops.llama_norm import LigerLlamaNormFunction
from liger_kernel.ops.plain_layer_norm import LigerPlainLayerNormFunction
from liger_kernel.ops.row_softmax import LigerRowSoftmaxFunction
from liger_kernel.ops.sum_norm import LigerSumNormFunction
from liger_kernel.ops.tanh_scale import LigerTanhScaleFunction
from liger_kernel.ops.tanh_shift import LigerTanhShiftFunction


class Softmax:
    apply = LigerRowSoftmaxFunction.apply


class LayerNorm:
    apply = LigerPlainLayerNormFunction.apply


class DyT:
    @staticmethod
    def apply(x: torch.Tensor, alpha: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor | None) -> Any:
        if beta is None:
            return LigerTanhScaleFunction.apply(x, alpha, gamma)
        return LigerTanhShiftFunction.apply(x, alpha, gamma, beta)


class RMSNorm:
    @staticmethod
    def apply(x: torch.Tensor, w: torch.Tensor | None, eps: float, offset: float, casting_mode: str, *_: Any) -> Any:
        assert casting_mode == "llama"
        if w is None:
            return LigerBareNormFunction.apply(x, eps)
        return LigerLlamaNormFunction.apply(x, w, eps, offset)


class FusedAddRMSNorm:
    @staticmethod
    def apply(
        x: torch.Tensor, r: torch.Tensor, w: torch.Tensor, eps: float, offset: float, casting_mode: str, *_: Any
    ) -> Any:
        assert casting_mode == "llama"
        return LigerSumNormFunction.apply(x, r, w, eps, offset)
