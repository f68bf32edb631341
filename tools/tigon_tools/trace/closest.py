"""Which Liger kernels do something similar: by tier, then by the ops in common.

The table names what each kernel's forward does in the words of ATen; it is data about Liger 0.8.5.
"""

from __future__ import annotations

from collections.abc import Iterable

SIGNATURES: dict[str, tuple[int, frozenset[str]]] = {
    name: (tier, frozenset(ops.split()))
    for name, tier, ops in (
        ("relu_squared", 1, "relu mul pow square"),
        ("swiglu", 1, "sigmoid mul silu two_inputs"),
        ("geglu", 1, "tanh gelu erf mul add pow two_inputs"),
        ("dyt", 1, "tanh mul add parameters"),
        ("softmax", 2, "_softmax amax exp sub sum div"),
        ("sparsemax", 2, "amax sub sum maximum relu sort"),
        ("rms_norm", 2, "mul mean rsqrt add pow parameters"),
        ("layer_norm", 2, "mean var_mean native_layer_norm sub rsqrt mul add parameters"),
        ("fused_add_rms_norm", 2, "add mul mean rsqrt pow parameters two_inputs two_outputs"),
        ("modulated_rms_norm", 2, "mul mean rsqrt add pow parameters two_inputs"),
        ("poly_norm", 2, "mul mean rsqrt pow add parameters"),
        ("group_norm", 2, "var_mean mean sub rsqrt mul add parameters view"),
        ("kl_div", 2, "exp log sub mul sum mean xlogy two_inputs"),
        ("jsd", 2, "exp log add sub mul sum two_inputs"),
        ("tvd", 2, "sub abs sum mul two_inputs"),
        ("cross_entropy", 3, "gather amax exp log sub sum _log_softmax nll_loss_forward where ne"),
        ("fused_linear_cross_entropy", 3, "mm addmm gather _log_softmax nll_loss_forward t"),
        ("fused_linear_jsd", 3, "mm exp log add sub mul sum t"),
        ("grpo_loss", 3, "gather exp log sub clamp minimum mul _log_softmax"),
        ("rope", 3, "cat slice neg mul add two_outputs"),
        ("llama4_rope", 3, "mul cat slice view two_outputs"),
        ("multi_token_attention", 3, "bmm convolution _softmax where"),
        ("fused_neighborhood_attention", 3, "bmm _softmax where"),
        ("fused_moe", 3, "sort index scatter_add mm sigmoid mul"),
        ("embedding", 3, "embedding index"),
        ("attn_res", 3, "bmm _softmax mean rsqrt mul"),
    )
}

EXEMPLARS = {1: "swiglu", 2: "rms_norm", 3: "cross_entropy"}
"""Liger's own skill names these to read first for each tier."""

LISTED = 3


def closest(tier: int, ops: Iterable[str], inputs: int, outputs: int, parameters: int) -> tuple[str, ...]:
    """Kernels of the tier, most ops in common (Jaccard index) first; the exemplar breaks ties.

    ops: ATen names without "aten." ("mul"). inputs, outputs, parameters: how many.
    """
    features = set(ops)
    if inputs - parameters > 1:
        features.add("two_inputs")
    if outputs > 1:
        features.add("two_outputs")
    if parameters:
        features.add("parameters")

    def distance(name: str) -> tuple[float, bool, str]:
        signature = SIGNATURES[name][1]
        overlap = len(features & signature) / len(features | signature)
        return (-overlap, name != EXEMPLARS[tier], name)

    same_tier = [name for name, (its_tier, _) in SIGNATURES.items() if its_tier == tier]
    return tuple(sorted(same_tier, key=distance)[:LISTED])
