"""Names of arguments and outputs that the generated file needs for itself step aside.

A kernel for `f(x, n_cols)` calls the second one `n_cols_input`. Nobody but the file's reader sees it:
`Function.apply` takes its arguments by position, and the module and the functional keep the reference's names.
"""

from __future__ import annotations

from dataclasses import replace

from tigon_tools.trace.operation import TracedOperation

LAUNCHER_NAMES = frozenset(
    "BLOCK_SIZE ctx grid n_cols n_rows num_warps shape torch triton tl calculate_settings device_context".split()
)
"""Names that a launcher uses for itself."""

_DERIVED = ("d{}", "{}_ptr", "{}_row_stride", "{}_dtype")
"""What the file calls things that belong to a name."""


def with_free_names(op: TracedOperation) -> TracedOperation:
    """The same operation, with names that mean nothing else in the file."""
    arguments = [a.name for a in op.arguments if a.kind != "static"]
    outputs = [_output_name(o.name, arguments) for o in op.outputs]
    chosen: dict[str, str] = {}
    for name in arguments:
        others = [chosen.get(other, other) for other in (*arguments, *outputs) if other != name]
        chosen[name] = _free(name, "input", others)
    results: dict[str, str] = {}
    for name in outputs:
        others = [*chosen.values(), *(results.get(other, other) for other in outputs if other != name)]
        results[name] = _free(name, "output", others)
    renamed = {a.name: replace(a, name=chosen.get(a.name, a.name)) for a in op.arguments}
    new_outputs = {o.name: replace(o, name=results[n]) for o, n in zip(op.outputs, outputs, strict=True)}
    return replace(
        op,
        arguments=tuple(renamed[a.name] for a in op.arguments),
        outputs=tuple(new_outputs[o.name] for o in op.outputs),
        tangents=tuple(replace(t, output=new_outputs[t.output.name]) for t in op.tangents),
        gradients=tuple(replace(g, argument=renamed[g.argument.name]) for g in op.gradients),
    )


def _output_name(name: str, arguments: list[str]) -> str:
    """A nameless output is `Y`; among arguments in small letters small, too, and another letter if that is taken."""
    if name.startswith("Y") and all(argument.islower() for argument in arguments):
        name = name.lower()
    return f"out{name[1:]}" if name in arguments else name


def _free(name: str, suffix: str, others: list[str]) -> str:
    taken = {*LAUNCHER_NAMES, *(form.format(other) for other in others for form in _DERIVED)}
    new, number = name, 1
    while new in taken or (new != name and new in others):
        new = f"{name}_{suffix}" if number == 1 else f"{name}_{suffix}{number}"
        number += 1
    return new
