"""The kernel profile: Liger's own field names, what a human approves."""

from __future__ import annotations

import difflib
import hashlib
import json
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tigon.workflow.refusal import Refusal
from tigon.workspace.render import KernelNames
from tigon_tools.schema.reference import Reference
from tigon_tools.schema.wire import to_wire


class TensorEntry(BaseModel):
    """An input or output, in words ("(B, T, H)", "input dtype")."""

    model_config = ConfigDict(extra="allow")

    name: str
    shape: str | list[int | str] | None = None
    dtype: str | None = None


class ParameterEntry(BaseModel):
    """A constructor argument or a learnable parameter."""

    model_config = ConfigDict(extra="allow")

    name: str


class ReferenceInput(BaseModel):
    """As in `classify_tier`: a tensor has a shape, a scalar a value."""

    model_config = ConfigDict(extra="forbid")

    name: str
    shape: list[int] | None = None
    dtype: str | None = None
    requires_grad: bool | None = None
    value: bool | int | float | str | None = None


class ReferenceEntry(BaseModel):
    model_config = ConfigDict(extra="forbid")

    source: str
    entry: str | None = None
    inputs: list[ReferenceInput] | None = None


class KernelProfile(BaseModel):
    """Fields of Liger's kernel profile. The assistant gives `operation_name` and `reference`; the
    rest it may state, and is then held to it; what it leaves out is computed."""

    model_config = ConfigDict(extra="forbid")

    operation_name: str
    reference: ReferenceEntry
    function_class_name: str | None = None
    module_class_name: str | None = None
    functional_name: str | None = None
    tier: int | None = None
    tier_description: str | None = None
    closest_existing_kernel: str | None = None
    forward_inputs: list[TensorEntry] | None = None
    forward_outputs: list[TensorEntry] | None = None
    forward_computation: str | None = None
    precision_sensitive_ops: list[str] | None = None
    backward_saved_tensors: list[str] | None = None
    backward_recompute: str | list[str] | None = None
    gradient_formulas: dict[str, str] | None = None
    grid_dimensions: str | None = None
    grid_description: str | None = None
    block_size_source: str | None = None
    needs_sm_parallelism: bool | None = None
    module_init_params: list[ParameterEntry] | None = None
    learnable_params: list[ParameterEntry] | None = None
    benchmark_variable: str | None = None
    benchmark_x_label: str | None = None
    benchmark_x_values_suggestion: str | list[int | float | str] | None = None
    benchmark_providers: list[str] | None = None
    benchmark_fixed_config: dict[str, Any] | None = Field(default=None)

    def claims(self) -> tuple[str, ...]:
        """Fields the assistant stated, in the profile's order."""
        return tuple(name for name in type(self).model_fields if getattr(self, name) is not None)


def read_profile(document: dict[str, Any]) -> KernelProfile:
    """A profile as an assistant sent it.

    Raises:
        Refusal: a field that is missing, unknown or of the wrong type; names it and what fits.
    """
    known = KernelProfile.model_fields
    unknown = [name for name in document if name not in known]
    if unknown:
        raise Refusal(
            "input",
            "the profile has " + "; ".join(_no_such_field(name) for name in unknown) + ".",
            f"use Liger's field names: {', '.join(known)}.",
        )
    if isinstance(document.get("reference"), str):
        document = {**document, "reference": {"source": document["reference"]}}
    try:
        return KernelProfile.model_validate(document)
    except ValidationError as problem:
        raise Refusal(
            "input",
            "the profile does not fit: "
            + "; ".join(_misfit(error) for error in problem.errors(include_url=False)[:5])
            + ".",
            "a profile needs operation_name and reference {source, entry, inputs}; the other fields are optional.",
        ) from None


def _no_such_field(name: str) -> str:
    near = difflib.get_close_matches(name, KernelProfile.model_fields, n=1)
    return f"no field {name!r}{f' (is it {near[0]!r}?)' if near else ''}"


def _misfit(error: Any) -> str:
    """One of pydantic's errors, with the names of Python's classes left out."""
    where = ".".join(str(part) for part in error["loc"])
    if error["type"] == "model_type":
        return f"{where} should be an object"
    return f"{where}: {error['msg'][:1].lower()}{error['msg'][1:]}"


def profile_hash(profile: KernelProfile, reference: Reference) -> str:
    """SHA-256 of the canonical form of profile and frozen reference: change either, and it is another."""
    document = {"profile": profile.model_dump(mode="json"), "reference": to_wire(reference)}
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def kernel_names(profile: KernelProfile) -> KernelNames:
    """The profile's names; all are set once it is filled."""
    assert profile.function_class_name is not None
    assert profile.module_class_name is not None
    assert profile.functional_name is not None
    return KernelNames(
        profile.operation_name,
        profile.function_class_name,
        profile.module_class_name,
        profile.functional_name,
        profile.benchmark_x_label or "total tokens",
    )
