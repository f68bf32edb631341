"""Questions that CUDA-only test code asks of the machine when it is imported.

Cause: `getattr(torch, "cpu").get_device_properties(0).total_memory` is how Liger's TVD test decides what to
skip on a small device; torch has no such function for the CPU, so none of the file's tests are collected.
Cure: answer truthfully with the machine's memory and cores.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class CpuProperties:
    """The fields of `torch.cuda.get_device_properties` that a CPU has an answer for; memory in bytes."""

    name: str
    total_memory: int
    multi_processor_count: int


def cpu_properties(device: object = None) -> CpuProperties:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return CpuProperties("cpu", memory, os.cpu_count() or 1)


def repair() -> None:
    if not hasattr(torch.cpu, "get_device_properties"):
        setattr(torch.cpu, "get_device_properties", cpu_properties)  # noqa: B010  torch declares no such name
