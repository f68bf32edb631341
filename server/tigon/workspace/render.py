"""Render a kernel's module, unit test and benchmark from its facts, in Liger's form."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tigon.workspace import parameters
from tigon.workspace.reference_text import ReferenceText, reference_text
from tigon_tools.schema.reference import Facts, InputFact, Reference


@dataclass(frozen=True)
class KernelNames:
    """What the profile calls things."""

    operation_name: str
    function_class: str
    module_class: str
    functional_name: str
    benchmark_x_label: str = "total tokens"


SHAPES_OF_RANK_2 = (
    ((16, 512), ""),
    ((7, 41), "odd"),
    ((1, 1), "one element"),
    ((1, 1023), "one row, just under a power of two"),
    ((3, 4097), "just past a power of two"),
)
SHAPES_OF_RANK_3 = (
    ((2, 8, 512), ""),
    ((3, 7, 41), "odd"),
    ((1, 1, 1023), "one row, just under a power of two"),
)


def render_module(names: KernelNames, facts: Facts) -> str:
    """`src/liger_kernel/transformers/<operation>.py`; scalars are set once, tensors are passed."""
    own = parameters.owned(facts)
    kept = ("scalar", "parameter")
    arguments = [f"self.{_attribute(a.name)}" if a.kind in kept else a.name for a in _passed(facts)]
    return _render(
        "module.py.j2",
        parameters=[{"attribute": _attribute(p.name), "value": parameters.created(p, facts)} for p in own],
        sized=parameters.is_sized(facts),
        function_class=names.function_class,
        module_class=names.module_class,
        summary=f"{names.operation_name}, {facts.tier_description}:",
        formulas=_formulas_of_outputs(facts),
        scalars=[_scalar(a) for a in _scalars(facts)],
        tensors=[a.name for a in _tensors(facts) if a.kind != "parameter"],
        apply_arguments=arguments,
    )


def render_unit_test(names: KernelNames, facts: Facts, reference: Reference) -> str:
    """`test/transformers/test_<operation>.py`: against the frozen reference, forward and backward."""
    tensors, scalars = _tensors(facts), _scalars(facts)
    same_shape = all(not a.broadcast and a.dtype == "input" for a in tensors)
    rank = len(facts.iteration_space)
    any_rank = same_shape and facts.tier == 1  # a loss may divide by the size of its first dimension
    shapes = SHAPES_OF_RANK_2 + SHAPES_OF_RANK_3[:1] if any_rank else _shapes_of_rank(rank)
    return _render(
        "unit_test.py.j2",
        **_names(names),
        **_reference(reference),
        tensors=[{"create": _creation(a, facts, "shape", "dtype", with_grad=a.requires_grad)} for a in tensors],
        discrete_outputs=any(not _is_floating(o.dtype) for o in facts.outputs),
        some_without_gradient=any(a.requires_grad and f"d{a.symbol}" not in facts.gradient_formulas for a in tensors),
        constant_outputs=not all(o.differentiable for o in facts.outputs),
        outputs=facts.outputs,
        output_names=_name_tuple([o.name for o in facts.outputs]),
        tensor_names=_name_tuple([a.name for a in tensors]),
        shapes=[{"value": repr(shape), "reason": reason} for shape, reason in shapes],
        scalars=scalars,
        settings=[repr(setting) for setting in _settings(scalars)],
        owns_parameters=bool(parameters.owned(facts)),
        module_call=_module_call(names, facts),
        reference_call=_reference_call(facts, reference, "expected_inputs"),
        reference_call_views=_reference_call(facts, reference, "map(view, expected_inputs)"),
        positional_call=_positional_call(facts),
        positional_call_views=_positional_call(facts)("map(view, actual_inputs)"),
        strided=same_shape and (any_rank or rank == 2),
    )


def render_benchmark(names: KernelNames, facts: Facts, reference: Reference) -> str:
    """`benchmark/scripts/benchmark_<operation>.py`, with Liger's own benchmark utilities."""
    tensors, scalars = [a for a in _tensors(facts) if a.kind != "parameter"], _scalars(facts)
    simple = len(tensors) == 1 and len(facts.outputs) == 1
    variables = {a.name: _variable(a.name, names, reference) for a in tensors}
    arguments = ", ".join(variables.values())
    settings = {a.name: _default(a) for a in scalars}
    return _render(
        "benchmark.py.j2",
        **_names(names),
        **_reference(reference),
        benchmark_x_label=names.benchmark_x_label,
        benchmark_shape=_benchmark_shape(facts),
        tensors=[
            {
                "name": variables[a.name],
                "create_for_benchmark": _creation(a, facts, "shape", "dtype", with_grad=a.requires_grad),
            }
            for a in tensors
        ],
        outputs=facts.outputs,
        unpacked_outputs=", ".join(_result(o.name) if o.differentiable else "_" for o in facts.outputs),
        summed_outputs=" + ".join(_result(o.name) for o in facts.outputs if o.differentiable),
        setting_keywords=", ".join(
            ["hidden_size"] * parameters.is_sized(facts) + [f"{a.name}={_default(a)!r}" for a in scalars if a.required]
        ),
        module_dtype=", dtype" if parameters.owned(facts) else "",
        reference_layer=_reference_layer(facts, reference, settings, variables),
        tensor_arguments=arguments,
        setup_result=f"{arguments}, layer",
        forward_fn=not simple,
        forward_argument="" if simple else f", forward_{names.operation_name}",
    )


_BENCHMARK_NAMES = frozenset("input cfg model_cfg bt hidden_size dtype shape layer torch device range".split())
"""What a benchmark's functions call their own."""


def _variable(name: str, names: KernelNames, reference: Reference) -> str:
    """Of a tensor in the benchmark; `input`, as PyTorch's own functions have it, is the run's there."""
    taken = {*_BENCHMARK_NAMES, names.module_class, reference.entry}
    return f"{name}_tensor" if name in taken else name


def _result(name: str) -> str:
    return f"{name}_output" if name == "layer" else name


def _names(names: KernelNames) -> dict[str, str]:
    return {
        "operation_name": names.operation_name,
        "function_class": names.function_class,
        "module_class": names.module_class,
        "functional_name": names.functional_name,
    }


def _reference(reference: Reference) -> dict[str, Any]:
    text: ReferenceText = reference_text(reference)
    return {"reference_imports": text.imports, "reference_body": text.body}


def _passed(facts: Facts) -> list[InputFact]:
    return [a for a in facts.inputs if a.kind != "static"]


def _tensors(facts: Facts) -> list[InputFact]:
    return [a for a in facts.inputs if a.kind in ("tensor", "parameter", "buffer")]


def _scalars(facts: Facts) -> list[InputFact]:
    return [a for a in facts.inputs if a.kind == "scalar"]


MODULE_ATTRIBUTES = frozenset(
    "add_module apply bfloat16 buffers call_super_init children compile cpu cuda double dump_patches eval extra_repr "
    "float forward get_buffer get_extra_state get_parameter get_submodule half ipu load_state_dict modules mtia "
    "named_buffers named_children named_modules named_parameters parameters register_backward_hook register_buffer "
    "register_forward_hook register_forward_pre_hook register_full_backward_hook register_full_backward_pre_hook "
    "register_load_state_dict_post_hook register_load_state_dict_pre_hook register_module register_parameter "
    "register_state_dict_post_hook register_state_dict_pre_hook requires_grad_ set_extra_state set_submodule "
    "share_memory state_dict to to_empty train training type xpu zero_grad T_destination".split()
)
"""Public names of `torch.nn.Module` 2.13, which a setting of the same name would replace."""


def _attribute(name: str) -> str:
    return f"{name}_value" if name in MODULE_ATTRIBUTES else name


def _formulas_of_outputs(facts: Facts) -> list[str]:
    """The outputs, and what they are written with; what is only kept for the backward says nothing here."""
    formulas = facts.forward_formulas
    needed: set[str] = set()
    waiting = [o.symbol for o in facts.outputs if o.symbol in formulas]
    while waiting:
        symbol = waiting.pop()
        if symbol not in needed:
            needed.add(symbol)
            waiting += [word for word in re.findall(r"\w+", formulas[symbol]) if word in formulas]
    return [f"{symbol} = {formula}" for symbol, formula in formulas.items() if symbol in needed]


def _scalar(argument: InputFact) -> dict[str, Any]:
    declaration = argument.name
    if argument.annotation in ("float", "int"):
        declaration += f": {argument.annotation}"
    if not argument.required:
        declaration += f" = {argument.default!r}" if ":" in declaration else f"={argument.default!r}"
    return {
        "name": argument.name,
        "attribute": _attribute(argument.name),
        "type": argument.dtype,
        "required": argument.required,
        "default_repr": repr(argument.default),
        "declaration": declaration,
    }


def _default(argument: InputFact) -> Any:
    if argument.default is not None:
        return argument.default
    return 2 if argument.dtype == "int" else 1.0


def _settings(scalars: Sequence[InputFact]) -> list[dict[str, Any]]:
    """Values for the scalars: the defaults, and others that are neither 0 nor 1."""
    if not scalars:
        return []
    return [{a.name: _default(a) for a in scalars}, {a.name: _other_value(a) for a in scalars}]


def _other_value(scalar: InputFact) -> Any:
    """Of the same sign and size, so that what the default may be, this may be too; never 0 or 1, which hide faults."""
    default = _default(scalar)
    if scalar.dtype == "int":
        return default + 1 if default > 0 else default - 1 if default < 0 else 2
    value = round(default * 0.75, 12)
    return value if value not in (0.0, 1.0) else default * 0.5 or 0.75


def _shapes_of_rank(rank: int) -> tuple[tuple[tuple[int, ...], str], ...]:
    tails = {2: SHAPES_OF_RANK_2, 3: SHAPES_OF_RANK_3}
    if rank in tails:
        return tails[rank]
    if rank < 2:
        return (((512,), ""), ((41,), "odd"), ((1023,), "just under a power of two"))
    lead = (2,) + (1,) * (rank - 4)
    return tuple(((*lead, *shape), reason) for shape, reason in SHAPES_OF_RANK_3)


def _creation(argument: InputFact, facts: Facts, shape: str, dtype: str, with_grad: bool = False) -> str:
    size = _shape_expression(argument, facts, shape)
    if argument.dtype == "bool":
        return f"torch.rand({size}, device=device) > 0.5"
    if argument.dtype.startswith(("int", "uint")):
        end = f"{shape}[-1]" if _is_label(argument, facts) else "4"
        return f"torch.randint(0, {end}, {size}, device=device, dtype=torch.{argument.dtype})"
    own = dtype if argument.dtype == "input" else f"torch.{argument.dtype}"
    grad = ", requires_grad=True" if with_grad else ""
    return f"torch.randn({size}, device=device, dtype={own}{grad})"


def _is_label(argument: InputFact, facts: Facts) -> bool:
    """One integer a row: it may say which column is meant, so it is one."""
    return argument.axes is not None and argument.axes == tuple(range(len(facts.iteration_space) - 1))


def _is_floating(dtype: str) -> bool:
    """Of an output: "input" follows the inputs, which are floating."""
    return dtype == "input" or "float" in dtype


def _shape_expression(argument: InputFact, facts: Facts, shape: str) -> str:
    """The argument's shape in terms of the iteration space's."""
    if not argument.broadcast or argument.shape is None:
        return shape
    axes = argument.axes or (None,) * len(argument.shape)
    sizes = [
        str(size) if axis is None else f"{shape}[{axis - len(facts.iteration_space)}]"
        for size, axis in zip(argument.shape, axes, strict=True)
    ]
    return f"({', '.join(sizes)},)" if sizes else "()"


def _benchmark_shape(facts: Facts) -> str:
    rank = len(facts.iteration_space)
    if any(a.broadcast for a in facts.inputs) and rank > 2:
        return "(" + "1, " * (rank - 2) + "bt, hidden_size)"
    return "(bt, hidden_size)"


def _name_tuple(names: Sequence[str]) -> str:
    return "(" + ", ".join(f'"{name}"' for name in names) + ("," if len(names) == 1 else "") + ")"


def _positional_call(facts: Facts) -> Callable[[str], str]:
    """Arguments in the reference's order: tensors from a sequence, scalars from `settings`."""
    passed = _passed(facts)
    leading = 0
    while leading < len(passed) and passed[leading].kind != "scalar":
        leading += 1
    tensors_first = all(a.kind == "scalar" for a in passed[leading:])

    def call(inputs: str) -> str:
        if tensors_first:
            return ", ".join([f"*{inputs}", *(f'settings["{a.name}"]' for a in passed[leading:])])
        parts, position = [], 0
        for argument in passed:
            if argument.kind == "scalar":
                parts.append(f'settings["{argument.name}"]')
            else:
                source = inputs if not inputs.startswith("map(") else f"list({inputs})"
                parts.append(f"{source}[{position}]")
                position += 1
        return ", ".join(parts)

    return call


def _reference_call(facts: Facts, reference: Reference, inputs: str) -> str:
    """The reference with the same settings; a module's are its constructor's."""
    has_scalars = bool(_scalars(facts))
    if facts.is_module:
        module = _instance(reference, "**settings" if has_scalars else "")
        return parameters.called_with(module, inputs, [str(a.attribute) for a in parameters.owned(facts)], facts)
    tensors = _tensors(facts)
    signature = [a.name for a in facts.inputs]
    in_order = signature[: len(tensors)] == [a.name for a in tensors]
    settings = ", **settings" if has_scalars else ""
    if in_order:
        return f"{reference.entry}(*{inputs}{settings})"
    names = _name_tuple([a.name for a in tensors])
    return f"{reference.entry}(**dict(zip({names}, {inputs})){settings})"


def _module_call(names: KernelNames, facts: Facts) -> str:
    """Liger's module with the same settings and the test's parameters."""
    arguments = ["shape[-1]"] if parameters.is_sized(facts) else []
    arguments += ["**settings"] if _scalars(facts) else []
    module = f"{names.module_class}({', '.join(arguments)}).to(device)"
    own = [_attribute(a.name) for a in parameters.owned(facts)]
    return parameters.called_with(module, "actual_inputs", own, facts)


def _instance(reference: Reference, settings: str) -> str:
    return f"{reference.entry}({settings}).to(device)"


def _reference_layer(facts: Facts, reference: Reference, settings: dict[str, Any], variables: Mapping[str, str]) -> str:
    keywords = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    if facts.is_module:
        module = _instance(reference, keywords)
        weights = {
            str(a.attribute): f"{parameters.created(a, facts)}.to(device, dtype).requires_grad_()"
            for a in parameters.owned(facts)
        }
        return parameters.bound(module, weights, list(variables.values())) if weights else module
    if not any(a.required for a in _scalars(facts)):
        return reference.entry
    arguments = ", ".join(variables.values())
    passed: list[str] = []
    by_name = False
    for argument in facts.inputs:
        if argument.kind == "static" or (argument.kind == "scalar" and not argument.required):
            by_name = True
        elif argument.kind == "scalar":
            by_name = True
            passed.append(f"{argument.name}={settings[argument.name]!r}")
        else:
            variable = variables[argument.name]
            passed.append(f"{argument.name}={variable}" if by_name else variable)
    return f"lambda {arguments}: {reference.entry}({', '.join(passed)})"


def _render(template: str, **context: Any) -> str:
    text: str = _environment().get_template(template).render(**context)
    return text


@cache
def _environment() -> Any:
    import jinja2  # not at the server's start: it costs 50 ms

    return jinja2.Environment(
        loader=jinja2.PackageLoader("tigon", "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
