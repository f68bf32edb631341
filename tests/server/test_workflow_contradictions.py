"""What is claimed against the facts: each false claim is one sentence with the fact; a true one is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from facts_by_hand import LAUNCH, silu_mul_facts, small_workspace

from tigon.workflow.contradictions import Evidence, problems
from tigon.workflow.fill import fill
from tigon.workflow.kernel_profile import read_profile
from tigon_tools.schema.reference import Facts


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    return Evidence(silu_mul_facts(), LAUNCH, small_workspace(tmp_path))


def claim(evidence: Evidence, **claims: Any) -> list[str]:
    document = {"operation_name": "gated_mul", "reference": {"source": "x.py:f"}, **claims}
    return problems(read_profile(document), evidence)


def with_facts(evidence: Evidence, **changes: Any) -> Evidence:
    facts: Facts = replace(evidence.facts, **changes)
    return replace(evidence, facts=facts)


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"tier": 2}, "tier 2 is claimed, and the graph is tier 1 (element-wise): every op is point-wise"),
        ({"tier_description": "reduction"}, "'reduction' is claimed, and it is 'element-wise'"),
        ({"needs_sm_parallelism": True}, "no gradient is summed over rows"),
        ({"forward_inputs": [{"name": "a"}]}, "leaves out 'b', which the reference takes"),
        ({"forward_inputs": [{"name": n} for n in "abq"]}, "names 'q', and the reference takes a, b, gate_multiplier"),
        ({"forward_outputs": [{"name": "Y"}, {"name": "Z"}]}, "has 2 entries, and the reference returns 1 (Y)"),
        ({"backward_saved_tensors": ["a"]}, "[a] is claimed, and the backward needs [a, b] (1,024 bytes; eager keeps 1,536)"),
        ({"precision_sensitive_ops": ["exp"]}, "leaves out sigmoid"),
        ({"gradient_formulas": {"da": "?"}}, "has no db, and b requires a gradient"),
        ({"gradient_formulas": {"da": "?", "db": "?", "dgate_multiplier": "?"}}, "gate_multiplier takes no gradient"),
        ({"gradient_formulas": {"da": "?", "db": "?", "dq": "?"}}, "has dq, and the reference takes a, b"),
        ({"learnable_params": [{"name": "weight"}]}, "names 'weight', and the reference has no parameters"),
        ({"module_init_params": []}, "leaves out 'gate_multiplier'"),
        ({"module_init_params": [{"name": "gate_multiplier"}, {"name": "eps"}]}, "names 'eps'"),
        ({"module_init_params": [{"name": "gate_multiplier", "default": 2}]}, "default 2 for 'gate_multiplier', and the reference has 1.0"),
        ({"grid_dimensions": "2D"}, "'2D' is claimed, and the kernel is launched 1D"),
        ({"closest_existing_kernel": "swiglue"}, "'swiglue' is not in this workspace; by the graph it is one of swiglu"),
    ],
)  # fmt: skip
def test_a_false_claim_is_one_sentence_with_the_fact(evidence: Evidence, claims: dict[str, Any], said: str) -> None:
    found = claim(evidence, **claims)
    assert len(found) == 1, found
    assert said in found[0]


@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"tier": 1, "tier_description": "element-wise", "needs_sm_parallelism": False},
        {"forward_inputs": [{"name": "A"}, {"name": "B"}]},  # Liger writes tensors in capitals
        {"backward_saved_tensors": ["B", "A"]},
        {"precision_sensitive_ops": ["torch.sigmoid", "exp"]},  # more care than needed is no contradiction
        {"precision_sensitive_ops": ["aten.sigmoid.default"]},
        {"gradient_formulas": {"dA": "?", "dB": "?", "p": "a step"}},
        {"module_init_params": [{"name": "gate_multiplier", "default": "1"}]},
        {"closest_existing_kernel": "geglu"},
        {"closest_existing_kernel": "none"},
    ],
)
def test_a_true_claim_is_no_problem(evidence: Evidence, claims: dict[str, Any]) -> None:
    assert claim(evidence, **claims) == []


def test_what_is_filled_never_contradicts_its_own_facts(evidence: Evidence) -> None:
    stated = read_profile({"operation_name": "gated_mul", "reference": {"source": "x.py:f"}})
    filled = fill(stated, evidence.facts, LAUNCH, evidence.workspace)
    assert problems(filled, evidence) == []
    assert [name for name, value in filled if value is None] == []


def test_a_weight_is_a_parameter_and_its_gradient_is_summed(evidence: Evidence) -> None:
    weight = replace(evidence.facts.inputs[1], name="weight", symbol="W", kind="parameter", broadcast=True)
    given = with_facts(evidence, inputs=(evidence.facts.inputs[0], weight))

    assert claim(given, needs_sm_parallelism=False) == [
        "needs_sm_parallelism False is claimed, and the gradient of weight is summed over rows."
    ]
    assert "leaves out 'weight'" in claim(given, learnable_params=[])[0]
    assert claim(given, learnable_params=[{"name": "weight"}], forward_inputs=[{"name": "a"}, {"name": "W"}]) == []
    assert claim(given, module_init_params=[{"name": "hidden_size"}]) == []  # it sizes the weight


def test_a_required_scalar_has_no_default_to_claim(evidence: Evidence) -> None:
    alpha = replace(evidence.facts.inputs[2], default=None, required=True)
    given = with_facts(evidence, inputs=(*evidence.facts.inputs[:2], alpha))
    entry = {"name": "gate_multiplier"}
    assert claim(given, module_init_params=[entry]) == []
    assert claim(given, module_init_params=[{**entry, "default": "required"}]) == []
    (said,) = claim(given, module_init_params=[{**entry, "default": 1.0}])
    assert said.endswith("has default 1.0 for 'gate_multiplier', and the reference requires a value.")


def test_the_launch_of_a_kernel_written_by_hand_is_its_authors(evidence: Evidence) -> None:
    by_hand = with_facts(evidence, generates=False, generates_not_because="aten.sort sorts.")
    assert claim(by_hand, grid_dimensions="2D") == ["no kernel can be scaffolded for this reference: aten.sort sorts."]


def test_what_was_tried_and_refused_is_a_problem_with_its_own_words(evidence: Evidence) -> None:
    tried = replace(evidence, refused="an argument is named 'ctx' (line 4 of the reference)")
    assert claim(tried) == [
        "no kernel can be scaffolded for this reference: an argument is named 'ctx' (line 4 of the reference)"
    ]
