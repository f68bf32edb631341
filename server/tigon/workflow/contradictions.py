"""What the assistant claims and the facts contradict, each as a sentence with the fact."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tigon.workflow.fill import Launch, needs_sm_parallelism
from tigon.workflow.kernel_profile import KernelProfile
from tigon.workspace.layout import Workspace
from tigon_tools.schema.reference import Facts


@dataclass(frozen=True)
class Evidence:
    """What claims are held against.

    refused: why the files of the profile could not be written, where that was found out by trying.
    """

    facts: Facts
    launch: Launch
    workspace: Workspace
    refused: str | None = None


def problems(profile: KernelProfile, evidence: Evidence) -> list[str]:
    """Every reason why the profile may not go to review; empty when it may.

    profile: as the assistant stated it, or filled.
    """
    return [problem for check in _CHECKS for problem in check(profile, evidence)]


def _tier(profile: KernelProfile, given: Evidence) -> Iterator[str]:
    evidence = given.facts.evidence[0].sentence if given.facts.evidence else ""
    if profile.tier is not None and profile.tier != given.facts.tier:
        yield f"tier {profile.tier} is claimed, and the graph is tier {given.facts.tier} ({given.facts.tier_description}): {evidence}"
    if profile.tier_description is not None and profile.tier_description != given.facts.tier_description:
        yield f"tier_description {profile.tier_description!r} is claimed, and it is {given.facts.tier_description!r}: {evidence}"
    claimed = profile.needs_sm_parallelism
    if claimed is not None and claimed != needs_sm_parallelism(given.facts):
        summed = [a.name for a in given.facts.inputs if a.requires_grad and a.broadcast]
        fact = (
            f"the gradient of {', '.join(summed)} is summed over rows" if summed else "no gradient is summed over rows"
        )
        yield f"needs_sm_parallelism {claimed} is claimed, and {fact}."


def _inputs(profile: KernelProfile, given: Evidence) -> Iterator[str]:
    if profile.forward_inputs is None:
        return
    symbols = _symbols(given.facts)
    claimed = {symbols.get(entry.name.lower()) for entry in profile.forward_inputs}
    for entry in profile.forward_inputs:
        if entry.name.lower() not in symbols:
            yield f"forward_inputs names {entry.name!r}, and the reference takes {_listed(given.facts)}."
    for argument in given.facts.inputs:
        if argument.kind in ("tensor", "parameter") and argument.symbol.lower() not in claimed:
            yield f"forward_inputs leaves out {argument.name!r}, which the reference takes."


def _outputs(profile: KernelProfile, given: Evidence) -> Iterator[str]:
    if profile.forward_outputs is not None and len(profile.forward_outputs) != len(given.facts.outputs):
        yield (
            f"forward_outputs has {len(profile.forward_outputs)} entries, and the reference returns "
            f"{len(given.facts.outputs)} ({', '.join(o.symbol for o in given.facts.outputs)})."
        )


def _saved(profile: KernelProfile, given: Evidence) -> Iterator[str]:
    if profile.backward_saved_tensors is None:
        return
    symbols = _symbols(given.facts)
    claimed = {symbols.get(name.lower(), name.lower()) for name in profile.backward_saved_tensors}
    saved = {name.lower() for name in given.facts.saved_tensors}
    if claimed != saved:
        yield (
            f"backward_saved_tensors [{', '.join(profile.backward_saved_tensors)}] is claimed, and the backward needs "
            f"[{', '.join(given.facts.saved_tensors)}] "
            f"({given.facts.saved_bytes:,} bytes; eager keeps {given.facts.eager_saved_bytes:,})."
        )


def _precision(profile: KernelProfile, given: Evidence) -> Iterator[str]:
    if profile.precision_sensitive_ops is None:
        return
    claimed = {
        name.lower().split("(")[0].removesuffix(".default").split(".")[-1] for name in profile.precision_sensitive_ops
    }
    missing = [name for name in given.facts.precision_sensitive_ops if name not in claimed]
    if missing:
        yield f"precision_sensitive_ops leaves out {', '.join(missing)}, which the graph has and float32 is needed for."


def _gradients(profile: KernelProfile, given: Evidence) -> Iterator[str]:
    """The formulas are prose and cannot be checked; which there are can be."""
    if profile.gradient_formulas is None:
        return
    symbols = _symbols(given.facts)
    inputs = {a.symbol.lower(): a for a in given.facts.inputs}
    steps = {key.lower() for key in given.facts.gradient_formulas}
    claimed = set()
    for key in profile.gradient_formulas:
        of = symbols.get(key.lower()[1:]) if key[:1] in "dD" else None
        if of is not None:
            claimed.add(of)
            if not inputs[of].requires_grad:
                yield f"gradient_formulas has {key}, and {inputs[of].name} takes no gradient."
        elif key[:1] in "dD" and key.lower() not in steps:
            yield f"gradient_formulas has {key}, and the reference takes {_listed(given.facts)}."
    for symbol, argument in inputs.items():
        if argument.requires_grad and symbol not in claimed:
            yield f"gradient_formulas has no d{argument.symbol}, and {argument.name} requires a gradient."


def _module_arguments(profile: KernelProfile, given: Evidence) -> Iterator[str]:
    """A module is set up with the reference's scalars. Sizes of learnable parameters may come beside them."""
    if profile.module_init_params is None:
        return
    scalars = {a.name: a for a in given.facts.inputs if a.kind == "scalar"}
    claimed = {entry.name: entry for entry in profile.module_init_params}
    sized = any(a.kind == "parameter" for a in given.facts.inputs)
    for name, entry in claimed.items():
        stated = (entry.model_extra or {}).get("default")
        if name not in scalars and not sized:
            yield f"module_init_params names {name!r}, and the reference's scalars are {', '.join(scalars) or 'none'}."
        elif name in scalars and scalars[name].required and stated not in (None, "required"):
            yield f"module_init_params has default {stated} for {name!r}, and the reference requires a value."
        elif (
            name in scalars
            and not scalars[name].required
            and stated is not None
            and not _same(stated, scalars[name].default)
        ):
            yield f"module_init_params has default {stated} for {name!r}, and the reference has {scalars[name].default}."
    for name in scalars:
        if name not in claimed:
            yield f"module_init_params leaves out {name!r}, a scalar that the reference takes."


def _parameters(profile: KernelProfile, given: Evidence) -> Iterator[str]:
    if profile.learnable_params is None:
        return
    claimed = {entry.name.lower() for entry in profile.learnable_params}
    known = {a.name.lower() for a in given.facts.inputs if a.kind == "parameter"}
    for name in sorted(claimed - known):
        yield f"learnable_params names {name!r}, and the reference has {', '.join(sorted(known)) or 'no parameters'}."
    for name in sorted(known - claimed):
        yield f"learnable_params leaves out {name!r}, a parameter of the reference."


def _launch(profile: KernelProfile, given: Evidence) -> Iterator[str]:
    """What is generated has one launch; a kernel that is written by hand has its author's."""
    if not given.facts.generates:
        return
    claimed, launch = profile.grid_dimensions, given.launch
    if claimed is not None and claimed.upper() != launch.grid_dimensions:
        yield f"grid_dimensions {claimed!r} is claimed, and the kernel is launched {launch.grid_dimensions}: {launch.grid_description}."


def _generates(profile: KernelProfile, given: Evidence) -> Iterator[str]:
    """A human is not asked about what could not be written afterwards."""
    if given.refused is not None:
        yield f"no kernel can be scaffolded for this reference: {given.refused}"
    elif not given.facts.generates and given.facts.tier < 3:  # of tier 3 the kernels are the assistant's to write
        yield f"no kernel can be scaffolded for this reference: {given.facts.generates_not_because}"


def _closest(profile: KernelProfile, given: Evidence) -> Iterator[str]:
    kernel = profile.closest_existing_kernel
    if kernel not in (None, "none") and kernel not in given.workspace.kernels():
        yield (
            f"closest_existing_kernel {kernel!r} is not in this workspace; by the graph it is "
            f"one of {', '.join(given.facts.closest_kernels)}."
        )


_CHECKS: tuple[Callable[[KernelProfile, Evidence], Iterator[str]], ...] = (
    _tier,
    _inputs,
    _outputs,
    _saved,
    _precision,
    _gradients,
    _module_arguments,
    _parameters,
    _launch,
    _generates,
    _closest,
)
"""In the order of the profile's fields."""


def _symbols(facts: Facts) -> dict[str, str]:
    """An argument's name or symbol to its symbol, all in lower case: `X` and `x` are the same claim."""
    return {alias.lower(): a.symbol.lower() for a in facts.inputs for alias in (a.name, a.symbol)}


def _listed(facts: Facts) -> str:
    return ", ".join(a.name for a in facts.inputs)


def _same(claimed: Any, default: Any) -> bool:
    """Whether a default is the same number, also where it was written as text ("1e-6")."""
    try:
        return float(claimed) == float(default)
    except (TypeError, ValueError):
        return bool(claimed == default) or str(claimed) == str(default)
