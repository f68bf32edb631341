"""Reading a profile, its identity, and Liger's names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from facts_by_hand import REFERENCE, silu_mul_facts

from tigon.workflow import naming
from tigon.workflow.kernel_profile import KernelProfile, profile_hash, read_profile
from tigon.workflow.refusal import Refusal
from tigon.workflow.understanding import LONGEST_FACTS, facts_for_model

CONTRACT = """operation_name function_class_name module_class_name functional_name tier tier_description
closest_existing_kernel forward_inputs forward_outputs forward_computation precision_sensitive_ops
backward_saved_tensors backward_recompute gradient_formulas grid_dimensions grid_description block_size_source
needs_sm_parallelism module_init_params learnable_params benchmark_variable benchmark_x_label
benchmark_x_values_suggestion benchmark_providers benchmark_fixed_config reference""".split()
"""Liger's kernel-profile-format.md, and `reference`."""


def stated(**changes: Any) -> dict[str, Any]:
    return {"operation_name": "silu_mul", "reference": {"source": "x.py:silu_mul"}, **changes}


def test_the_fields_are_ligers() -> None:
    assert set(KernelProfile.model_fields) == set(CONTRACT)


def test_two_fields_are_enough_and_only_they_are_claimed() -> None:
    assert read_profile(stated()).claims() == ("operation_name", "reference")
    assert read_profile(stated(tier=1, needs_sm_parallelism=False)).claims()[2:] == ("tier", "needs_sm_parallelism")


def test_a_reference_may_be_given_as_its_source() -> None:
    assert read_profile(stated(reference="x.py:f")).reference.source == "x.py:f"


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (stated(gradient_formula={}, tiers=1), r"no field 'gradient_formula' \(is it 'gradient_formulas'\?\); no field 'tiers' \(is it 'tier'"),
        (stated(zzz=1), "no field 'zzz'[.] Next: use Liger's field names: operation_name"),
        ({"operation_name": "x"}, "reference: field required"),
        (stated(reference={"code": "x"}), "reference.source: field required"),
        (stated(tier="high"), "tier: input should be a valid integer"),
        (stated(forward_inputs=["a"]), r"forward_inputs\.0 should be an object"),
        (stated(reference={"source": "x", "inputs": [{"name": "a", "shape": ["B"]}]}), r"reference\.inputs\.0\.shape\.0"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_by_name(document: dict[str, Any], said: str) -> None:
    with pytest.raises(Refusal, match=said) as refused:
        read_profile(document)
    assert "pydantic" not in str(refused.value)


def test_the_hash_is_of_every_entry_and_of_the_reference() -> None:
    profile = read_profile(stated(gradient_formulas={"da": "1", "db": "2"}))
    first = profile_hash(profile, REFERENCE)
    assert len(first) == 64
    reordered = read_profile(dict(reversed(stated(gradient_formulas={"db": "2", "da": "1"}).items())))
    assert profile_hash(reordered, REFERENCE) == first

    others = [
        profile_hash(read_profile(stated(gradient_formulas={"da": "1", "db": "3"})), REFERENCE),
        profile_hash(profile, replace(REFERENCE, code=REFERENCE.code + "# a comment\n")),
        profile_hash(profile, replace(REFERENCE, entry="other")),
        profile_hash(profile, replace(REFERENCE, inputs=())),
    ]
    assert len({first, *others}) == 5


@pytest.mark.parametrize(
    ("operation", "module"),
    [  # as Liger 0.8.5 itself names them, but for the last three
        ("relu_squared", "LigerReLUSquared"),
        ("rms_norm", "LigerRMSNorm"),
        ("dyt", "LigerDyT"),
        ("jsd", "LigerJSD"),
        ("tvd", "LigerTVD"),
        ("grpo_loss", "LigerGRPOLoss"),
        ("softmax", "LigerSoftmax"),
        ("swish_beta", "LigerSwishBeta"),
        ("gelu_mul", "LigerGELUMul"),
        ("clamped_glu", "LigerClampedGLU"),
    ],
)
def test_names_are_written_as_liger_writes_them(operation: str, module: str) -> None:
    assert naming.class_names(operation, {}, {}) == (f"{module}Function", module)
    assert naming.functional(operation) == f"liger_{operation}"


def test_a_name_that_another_kernel_has_is_written_plainly() -> None:
    taken = {"LigerSiLUMulFunction": "swiglu"}
    assert naming.class_names("silu_mul", taken, {}) == ("LigerSiluMulFunction", "LigerSiluMul")
    own = {"LigerSiLUMulFunction": "silu_mul"}
    assert naming.class_names("silu_mul", own, {})[1] == "LigerSiLUMul"


def test_facts_in_an_answer_stay_short_whatever_the_graph() -> None:
    import json

    small = facts_for_model(silu_mul_facts())
    assert small["gradient_formulas"]["db"] == "dY * silu(p)"
    steps = {f"s{n}": "a * b + c" * 5 for n in range(1000)}
    large = silu_mul_facts(
        forward_formulas=steps, gradient_formulas=steps, recomputed=tuple(steps), inputs=silu_mul_facts().inputs * 99
    )
    document = facts_for_model(large)
    assert len(json.dumps(document)) <= LONGEST_FACTS
    assert "1000 entries" in document["gradient_formulas"]["left_out"]
    assert document["saved_tensors"] == ["a", "b"]
