"""Fill what the assistant left out of a profile, from the facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tigon.workflow import naming
from tigon.workflow.kernel_profile import KernelProfile
from tigon.workspace.layout import Workspace
from tigon_tools.schema.reference import Facts, InputFact

BENCHMARK_TOKENS = [1024, 2048, 4096, 8192, 16384]
"""Tokens in a step, the range of Liger's own sweeps; its utilities cut it to the memory there is."""


@dataclass(frozen=True)
class Launch:
    """How the generated kernels are launched."""

    grid_dimensions: str
    grid_description: str
    block_size_source: str


ROW_LAUNCH = Launch("1D", "one program per row", "calculate_settings(n_cols)")
"""What Liger's row kernels do; for tiers that are not generated."""


def fill(profile: KernelProfile, facts: Facts, launch: Launch, workspace: Workspace) -> KernelProfile:
    """The profile with every field set; what was stated stays."""
    computed = _computed(profile.operation_name, facts, launch, workspace)
    missing = {name: value for name, value in computed.items() if getattr(profile, name) is None}
    return KernelProfile.model_validate({**profile.model_dump(), **missing})


def _computed(name: str, facts: Facts, launch: Launch, workspace: Workspace) -> dict[str, Any]:
    scalars = [a for a in facts.inputs if a.kind == "scalar"]
    kernels = workspace.kernels()
    function_class, module_class = naming.class_names(name, workspace.exported_ops(), workspace.exported_modules())
    closest = [kernel for kernel in facts.closest_kernels if kernel in kernels and kernel != name]
    return {
        "function_class_name": function_class,
        "module_class_name": module_class,
        "functional_name": naming.functional(name),
        "tier": facts.tier,
        "tier_description": facts.tier_description,
        "closest_existing_kernel": closest[0] if closest else "none",
        "forward_inputs": [_input(a) for a in facts.inputs if a.kind != "static"],
        "forward_outputs": [
            {"name": o.symbol, "shape": _shape(o.shape), "dtype": _dtype(o.dtype)} for o in facts.outputs
        ],
        "forward_computation": "; ".join(f"{symbol} = {text}" for symbol, text in facts.forward_formulas.items()),
        "precision_sensitive_ops": list(facts.precision_sensitive_ops),
        "backward_saved_tensors": list(facts.saved_tensors),
        "backward_recompute": ", ".join(facts.recomputed) or "nothing",
        "gradient_formulas": dict(facts.gradient_formulas),
        "grid_dimensions": launch.grid_dimensions,
        "grid_description": launch.grid_description,
        "block_size_source": launch.block_size_source,
        "needs_sm_parallelism": needs_sm_parallelism(facts),
        "module_init_params": [_module_argument(a) for a in scalars],
        "learnable_params": [
            {"name": a.name, "shape": _shape(a.shape or ())} for a in facts.inputs if a.kind == "parameter"
        ],
        "benchmark_variable": "BT",
        "benchmark_x_label": "total tokens",
        "benchmark_x_values_suggestion": list(BENCHMARK_TOKENS),
        "benchmark_providers": ["liger", "torch"],
        "benchmark_fixed_config": {"hidden_size": "of the benchmark's model", "dtype": "bfloat16"},
    }


def needs_sm_parallelism(facts: Facts) -> bool:
    """A gradient that is summed over rows needs partial sums for each SM."""
    return any(a.requires_grad and a.broadcast for a in facts.inputs)


def _module_argument(argument: InputFact) -> dict[str, Any]:
    """A scalar of the reference; one without a default there has none in the module."""
    default = {"required": True} if argument.required else {"default": argument.default}
    return {"name": argument.name, "type": argument.dtype, **default}


def _input(argument: InputFact) -> dict[str, Any]:
    if argument.kind == "scalar":
        return {"name": argument.name, "shape": "scalar", "dtype": argument.dtype}
    return {"name": argument.name, "shape": _shape(argument.shape or ()), "dtype": _dtype(argument.dtype)}


def _shape(shape: Sequence[int]) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def _dtype(dtype: str) -> str:
    return "input dtype" if dtype == "input" else dtype
