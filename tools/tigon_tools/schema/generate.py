"""Job `generate`: the ops file of an approved profile."""

from __future__ import annotations

from dataclasses import dataclass

from tigon_tools.schema.reference import Facts, Reference


@dataclass(frozen=True)
class GenerateRequest:
    """Names are the profile's; `reference` is the frozen one."""

    reference: Reference
    operation_name: str
    function_class_name: str


@dataclass(frozen=True)
class GenerateResult:
    """The text of `src/liger_kernel/ops/<operation_name>.py`, not yet formatted.

    exports: names that `liger_kernel.ops` re-exports (the Function class, forward, backward).
    signature: of the functional, with the reference's own names ("a, b, gate_multiplier: float = 1.0").
    call_arguments: the same, as passed on ("a, b, gate_multiplier").
    complete: False where kernel bodies are left to the assistant (tier 3); then `unwritten` says what.
    """

    ops_source: str
    exports: tuple[str, ...]
    signature: str
    call_arguments: str
    grid_dimensions: str
    grid_description: str
    block_size_source: str
    facts: Facts
    complete: bool = True
    unwritten: tuple[str, ...] = ()
