"""What a generated module, its test and its benchmark do about learnable parameters, which the module owns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tigon_tools.schema.reference import Facts, InputFact


def owned(facts: Facts) -> list[InputFact]:
    """The reference module's parameters; they come after its inputs."""
    return [a for a in facts.inputs if a.kind == "parameter"]


def is_sized(facts: Facts) -> bool:
    """Some parameter is as long as a row, so the module is told how long that is."""
    return any(_is_row(parameter, facts) for parameter in owned(facts))


def _is_row(parameter: InputFact, facts: Facts) -> bool:
    return parameter.axes == (len(facts.iteration_space) - 1,)


def created(parameter: InputFact, facts: Facts) -> str:
    """The tensor as the reference makes it; random where that is more than one number."""
    size = "hidden_size" if _is_row(parameter, facts) else ", ".join(map(str, parameter.shape or ()))
    if parameter.initial is None:
        return f"torch.randn({size})"
    known = {0.0: f"torch.zeros({size})", 1.0: f"torch.ones({size})"}
    return known.get(parameter.initial, f"torch.full(({size},), {parameter.initial})")


def called_with(module: str, inputs: str, names: Sequence[str], facts: Facts) -> str:
    """A call of the module on `inputs`, whose last ones are its parameters: they may have any size and gradient."""
    if not names:
        return f"{module}(*{inputs})"
    count = sum(a.kind in ("tensor", "buffer") for a in facts.inputs)
    listed = ", ".join(f'"{name}"' for name in names) + ("," if len(names) == 1 else "")
    return f"functional_call({module}, dict(zip(({listed}), {inputs}[{count}:])), tuple({inputs}[:{count}]))"


def bound(module: str, weights: Mapping[str, str], arguments: Sequence[str]) -> str:
    """The module as a function of its inputs, with parameters made where the benchmark knows their size."""
    entries = ", ".join(f'"{name}": {value}' for name, value in weights.items())
    given = ", ".join(arguments) + ("," if len(arguments) == 1 else "")
    call = f"torch.func.functional_call(reference, weights, ({given}))"
    return f"(lambda reference, weights: lambda {', '.join(arguments)}: {call})({module}, {{{entries}}})"
