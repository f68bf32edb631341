"""Scaffolded row kernels under the signatures of Liger's Functions, options included.

A Liger Function takes options (an offset, a casting mode, a missing bias) that are references of their own here.
Each adaptor passes on; none computes.
"""

from __future__ import annotations

from typing import Any

import torch
from liger_kernel.ops.bare_norm import LigerBareNormFunction
from liger_kernel.ops.capped_entropy import LigerCappedEntropyFunction
from liger_kernel.ops.labelled_shannon import LigerLabelledShannonFunction
from liger_kernel.ops.labelled_variation import LigerLabelledVariationFunction
from liger_kernel.ops.llama_norm import LigerLlamaNormFunction
from liger_kernel.ops.log_divergence import LigerLogDivergenceFunction
from liger_kernel.ops.plain_layer_norm import LigerPlainLayerNormFunction
from liger_kernel.ops.powers_norm import LigerPowersNormFunction
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


class PolyNorm:
    @staticmethod
    def apply(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float, *_: Any) -> Any:
        return LigerPowersNormFunction.apply(x, w, b, eps)


class KLDivLoss:
    @staticmethod
    def apply(x: torch.Tensor, y: torch.Tensor, reduction: str, log_target: bool, *_: Any) -> Any:
        assert reduction == "batchmean" and log_target
        return LigerLogDivergenceFunction.apply(x, y)


class TVDLoss:
    @staticmethod
    def apply(x: torch.Tensor, y: torch.Tensor, label: torch.Tensor, reduction: str, ignore_index: int) -> Any:
        assert reduction == "batchmean"
        return LigerLabelledVariationFunction.apply(x, y, label, ignore_index)


class JSD:
    @staticmethod
    def apply(x: torch.Tensor, y: torch.Tensor, label: torch.Tensor, beta: float, ignore_index: int, *_: Any) -> Any:
        return LigerLabelledShannonFunction.apply(x, y, label, beta, ignore_index)


class CrossEntropy:
    @staticmethod
    def apply(
        x: torch.Tensor,
        label: torch.Tensor,
        weight: None,
        ignore_index: int,
        scale: float,
        smoothing: float,
        reduction: str,
        softcap: float,
        *_: Any,
    ) -> Any:
        assert weight is None and reduction == "mean"
        loss, z_loss = LigerCappedEntropyFunction.apply(x, label, ignore_index, scale, smoothing, softcap)
        return loss, z_loss, None, None
