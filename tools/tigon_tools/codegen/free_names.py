"""Names of arguments and outputs that the generated file needs for itself step aside.

A kernel for `f(x, n_cols)` calls the second one `n_cols_input`. Only a reader of the ops file sees it:
`Function.apply` takes its arguments by position, and the module and the functional keep the reference's names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tigon_tools.codegen.kernel import OWN_NAMES
from tigon_tools.codegen.point_ops import LIBDEVICE
from tigon_tools.codegen.unsupported import Unsupported
from tigon_tools.trace.operation import TracedOperation

_LAUNCHER_NAMES = frozenset(
    "BLOCK_SIZE ctx grid n_rows num_warps shape torch calculate_settings device_context col_mask int min tuple "
    "RuntimeError TypeError ValueError MAX_BLOCK_SIZE _as_rows _check_dtypes _result_dtype".split()
)

_DERIVED = ("d{}", "{}_ptr", "{}_row_stride", "{}_dtype")
"""What the file calls things that belong to a name."""


_ROW_NAMES = frozenset(
    "BLOCK_ROWS TILE_SIZE TILE_COLUMNS PIECE_SIZE MAX_WARPS NUM_STAGES row_mask cell_mask row_block start running_max shift "
    "n_programs n_col_blocks partial_sums kernel max _row_settings _tile_settings _max_programs _num_stages".split()
)
"""What kernels over rows and their launchers use besides."""


def names_of_the_file(operation_name: str, function_class_name: str, rows: bool = False) -> frozenset[str]:
    """What means something else in the file, whatever it computes. rows: its kernels reduce rows."""
    own = (f"{operation_name}_forward", f"{operation_name}_backward")
    kernels = (f"_{name}_kernel" for name in own)
    names = {*OWN_NAMES, *_LAUNCHER_NAMES, *LIBDEVICE, *own, *kernels, function_class_name}
    return frozenset(names | _ROW_NAMES if rows else names)


def derived(names: Iterable[str]) -> set[str]:
    return {form.format(name) for name in names for form in _DERIVED}


def with_free_names(op: TracedOperation, own: frozenset[str]) -> TracedOperation:
    """The same operation, with names that mean nothing else in the file. own: see `names_of_the_file`.

    Raises:
        Unsupported: an argument is called `self`, and a module's `forward` has one already.
    """
    arguments = [a.name for a in op.arguments if a.kind != "static"]
    if "self" in arguments:
        raise Unsupported("an argument is called `self`, as the module's own is; rename it in the reference.")
    outputs = [_output_name(o.name, arguments) for o in op.outputs]
    chosen: dict[str, str] = {}
    for name in arguments:
        others = [chosen.get(other, other) for other in (*arguments, *outputs) if other != name]
        chosen[name] = _free(name, "input", others, own)
    results: dict[str, str] = {}
    for name in outputs:
        others = [*chosen.values(), *(results.get(other, other) for other in outputs if other != name)]
        results[name] = _free(name, "output", others, own)
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


def _free(name: str, suffix: str, others: list[str], own: frozenset[str]) -> str:
    # In small letters, since what is loaded from `X_ptr` is `x`.
    taken = {other.lower() for other in (*own, *derived(others))}
    new, number = name, 1
    while new.lower() in taken or (new != name and new in others):
        new = f"{name}_{suffix}" if number == 1 else f"{name}_{suffix}{number}"
        number += 1
    return new
