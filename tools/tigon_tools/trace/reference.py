"""Execute a frozen reference: the callable, and the arguments it is called with."""

from __future__ import annotations

import importlib
import inspect
import linecache
import sys
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

from tigon_tools.schema.errors import JobError
from tigon_tools.schema.reference import InputSpec, Reference, Scalar
from tigon_tools.trace import source

ASSUMED_SHAPE = (4, 8, 64)
"""Batch, sequence, hidden: for tensors of which nothing is known."""

ASSUMED_SCALAR = 1.25
"""For a float without a default: neither 0 nor 1 nor a power of two, so that no term vanishes."""

FLOATING = ("float16", "bfloat16", "float32", "float64")


@dataclass(frozen=True)
class ArgumentSpec:
    """One argument: `kind` is "tensor", "parameter", "buffer", "scalar" or "static".

    shape and dtype: of tensors. value: what a scalar or static argument is traced with.
    attribute: for a scalar that the module's constructor keeps under its own name.
    example: a tensor given by `example_inputs()`, kept for its values.
    """

    name: str
    kind: str
    shape: tuple[int, ...] | None = None
    dtype: str = "float32"
    requires_grad: bool = False
    value: Scalar = None
    default: Scalar = None
    required: bool = True
    annotation: str | None = None
    attribute: bool = False
    keyword_only: bool = False

    def tensor(self, dtype: torch.dtype | None = None, generator: torch.Generator | None = None) -> torch.Tensor:
        """A random example; `dtype` replaces the spec's where that is floating."""
        own: torch.dtype = getattr(torch, self.dtype)
        shape = self.shape or ()
        if own.is_floating_point:
            example = torch.randn(shape, generator=generator, dtype=torch.float32).to(dtype or own)
            return example.requires_grad_(self.requires_grad)
        if own is torch.bool:
            return torch.rand(shape, generator=generator) > 0.5
        return torch.randint(0, 4, shape, generator=generator, dtype=own)


@dataclass
class LoadedReference:
    """The executed reference.

    call: takes a value for each argument by name, returns the outputs as a tuple.
    """

    reference: Reference
    filename: str
    arguments: tuple[ArgumentSpec, ...]
    module: nn.Module | None
    function: Any
    returned_names: tuple[str | None, ...]
    notes: tuple[str, ...] = ()
    _parameters: dict[str, str] = field(default_factory=dict)

    def state_of(self, argument: str) -> tuple[str | None, float | None]:
        """A parameter's or buffer's name in the module, and its value where that is one number everywhere."""
        name = self._parameters.get(argument)
        if name is None or self.module is None:
            return None, None
        value = {**dict(self.module.named_parameters()), **dict(self.module.named_buffers())}[name].detach()
        same = value.numel() > 0 and bool((value == value.reshape(-1)[0]).all())
        return name, float(value.reshape(-1)[0]) if same else None

    def call(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """Run the reference.

        Raises:
            Whatever the reference raises.
        """
        positional, keywords, state = [], {}, {}
        for argument in self.arguments:
            value = values[argument.name]
            if argument.kind in ("parameter", "buffer"):
                state[self._parameters[argument.name]] = value
            elif argument.attribute:
                setattr(self.module, argument.name, value)
            elif argument.keyword_only:
                keywords[argument.name] = value
            else:
                positional.append(value)
        if self.module is not None:
            result = torch.func.functional_call(self.module, state, tuple(positional), keywords)
        else:
            result = self.function(*positional, **keywords)
        return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def load(reference: Reference) -> LoadedReference:
    """Execute the frozen text and work out the arguments.

    Raises:
        JobError: "bad_reference" where the text fails, the entry is not a function or nn.Module,
            or an input does not fit the signature.
    """
    tree = source.parse(reference.code, reference.origin)
    if reference.module is None:
        source.check_imports(tree, reference.origin)
    filename, namespace = _execute(reference)
    entry = namespace.get(reference.entry)
    if entry is None:
        raise JobError(
            "bad_reference",
            f"{reference.origin} defines no {reference.entry!r}.",
            "Name an entry that it defines.",
        )
    module, function, attributes = _callable(entry, reference)
    notes: list[str] = []
    arguments = _arguments(function, module, reference, namespace, notes)
    names = _parameter_names(module, {a.name for a in arguments} | {a.name for a in attributes})
    state = _state_arguments(module, names)
    return LoadedReference(
        reference,
        filename,
        (*arguments, *state, *attributes),
        module,
        function,
        source.returned_names(tree, reference.entry),
        tuple(notes),
        {argument: name for name, argument in names.items()},
    )


def _execute(reference: Reference) -> tuple[str, dict[str, Any]]:
    if reference.module is not None and reference.module.split(".")[0] == "torch":
        # torch's own functions are pinned by torch's version; executing its files twice breaks them.
        module = importlib.import_module(reference.module)
        return module.__file__ or reference.module, dict(vars(module))
    filename = f"<reference {reference.origin}>"
    linecache.cache[filename] = (
        len(reference.code),
        None,
        reference.code.splitlines(keepends=True),
        filename,
    )
    fresh = types.ModuleType("tigon_reference")
    if reference.module is not None:
        fresh.__name__ = reference.module
        fresh.__package__ = reference.module.rpartition(".")[0]
    else:
        sys.modules["tigon_reference"] = fresh  # dataclasses look their module up
    try:
        exec(compile(reference.code, filename, "exec"), fresh.__dict__)
    except Exception as problem:
        line = line_of(problem, filename)
        raise JobError(
            "bad_reference",
            f"{reference.origin} fails when it is executed: {type(problem).__name__}: {problem} (line {line}).",
            "Correct the reference; it has to run on its own.",
            line,
        ) from None
    return filename, fresh.__dict__


def _failed(what: str, problem: Exception, reference: Reference) -> JobError:
    line = line_of(problem, f"<reference {reference.origin}>")
    where = f" (line {line})" if line else ""
    return JobError(
        "bad_reference",
        f"{what} of {reference.origin} fails: {type(problem).__name__}: {problem}{where}.",
        "Correct the reference; it has to run on its own.",
        line,
    )


def line_of(problem: BaseException, filename: str) -> int | None:
    line = None
    trace = problem.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == filename:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _callable(entry: Any, reference: Reference) -> tuple[nn.Module | None, Any, tuple[ArgumentSpec, ...]]:
    if isinstance(entry, nn.Module):
        return entry, entry.forward, ()
    if inspect.isclass(entry) and issubclass(entry, nn.Module):
        try:
            module = entry()
        except TypeError as problem:
            raise JobError(
                "bad_reference",
                f"{reference.entry} cannot be made without arguments: {problem}.",
                "Give its constructor defaults, or name a module-level instance as the entry.",
            ) from None
        except Exception as problem:
            raise _failed(f"{reference.entry}()", problem, reference) from None
        return module, module.forward, _constructor_scalars(entry, module)
    if inspect.isclass(entry) or not callable(entry):
        raise JobError(
            "bad_reference",
            f"{reference.entry} is a {type(entry).__name__}, neither a function nor an nn.Module.",
            "Name a function or an nn.Module as the entry.",
        )
    return None, entry, ()


def _constructor_scalars(cls: type[nn.Module], module: nn.Module) -> tuple[ArgumentSpec, ...]:
    """Floats that the constructor keeps as they are: settings of the operation, not of its shape."""
    scalars = []
    for parameter in inspect.signature(cls).parameters.values():
        kept = getattr(module, parameter.name, None)
        if isinstance(parameter.default, float) and kept == parameter.default:
            scalars.append(
                ArgumentSpec(
                    parameter.name, "scalar", dtype="float", value=kept, default=kept, required=False,
                    annotation="float", attribute=True,
                )
            )  # fmt: skip
    return tuple(scalars)


def _parameter_names(module: nn.Module | None, taken: set[str]) -> dict[str, str]:
    """Dotted name in the module to a name for an argument."""
    if module is None:
        return {}
    names = [name for name, _ in module.named_parameters()] + [name for name, _ in module.named_buffers()]
    chosen: dict[str, str] = {}
    for name in names:
        argument = name.replace(".", "_")
        if argument[0].isdigit():  # of an nn.Sequential: "0.weight"
            argument = f"layer{argument}"
        chosen[name] = argument if argument not in taken else f"{argument}_parameter"
    return chosen


def _state_arguments(module: nn.Module | None, names: Mapping[str, str]) -> tuple[ArgumentSpec, ...]:
    if module is None:
        return ()
    state = []
    for kind, tensors in (("parameter", module.named_parameters()), ("buffer", module.named_buffers())):
        for name, tensor in tensors:
            state.append(
                ArgumentSpec(
                    names[name], kind, tuple(tensor.shape), str(tensor.dtype)[6:],
                    kind == "parameter" and tensor.requires_grad,
                )
            )  # fmt: skip
    return tuple(state)


def _arguments(
    function: Any, module: nn.Module | None, reference: Reference, namespace: dict[str, Any], notes: list[str]
) -> tuple[ArgumentSpec, ...]:
    parameters = _signature(function, reference)
    given = _given_inputs(reference, namespace, parameters)
    unknown = sorted(set(given) - {p.name for p in parameters})
    if unknown:
        raise JobError(
            "bad_reference",
            f"inputs name {unknown[0]!r}, which {reference.entry} does not take; "
            f"it takes {', '.join(p.name for p in parameters) or 'nothing'}.",
            "Use the reference's own argument names.",
        )
    if not given:
        notes.append(f"no inputs were given: tensors were assumed to be float32 of shape {ASSUMED_SHAPE}.")
    return tuple(_argument(p, given.get(p.name), bool(given), reference) for p in parameters)


def _signature(function: Any, reference: Reference) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError):
        # Built-in functions have no signature: one tensor is what point-wise ones take.
        return [inspect.Parameter("input", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise JobError(
                "bad_reference",
                f"{reference.entry} takes *{parameter.name}: its arguments are not known.",
                "Write the arguments out.",
            )
    return parameters


def _given_inputs(
    reference: Reference, namespace: dict[str, Any], parameters: Sequence[inspect.Parameter]
) -> dict[str, InputSpec]:
    if reference.inputs is not None:
        names = [spec.name for spec in reference.inputs]
        if len(set(names)) != len(names):
            raise JobError("bad_reference", "inputs name the same argument twice.", "Name each argument once.")
        return {spec.name: _checked(spec) for spec in reference.inputs}
    example = namespace.get("example_inputs")
    if not callable(example):
        return {}
    try:
        values = example()
    except Exception as problem:
        raise _failed("example_inputs()", problem, reference) from None
    if not isinstance(values, Mapping):
        values = values if isinstance(values, (tuple, list)) else (values,)
        values = dict(zip((p.name for p in parameters), values, strict=False))
    return {name: _spec_of(name, value) for name, value in values.items()}


def _spec_of(name: str, value: Any) -> InputSpec:
    if isinstance(value, torch.Tensor):
        floating = value.is_floating_point()
        return InputSpec(name, tuple(value.shape), str(value.dtype)[6:], floating)
    return InputSpec(name, None, type(value).__name__, False, value)


def _checked(spec: InputSpec) -> InputSpec:
    dtype = spec.dtype.removeprefix("torch.")
    if spec.shape is None or dtype in ("float", "int", "str"):
        return replace(spec, shape=None, dtype=dtype)
    if not isinstance(getattr(torch, dtype, None), torch.dtype):
        raise JobError(
            "bad_reference",
            f"input {spec.name!r} has dtype {spec.dtype!r}, which torch does not know.",
            f"Use one of {', '.join(FLOATING)}, int64, int32, bool.",
        )
    if any(size < 0 for size in spec.shape):
        raise JobError("bad_reference", f"input {spec.name!r} has a negative size.", "Give sizes of 1 or more.")
    return replace(spec, dtype=dtype)


def _argument(
    parameter: inspect.Parameter, spec: InputSpec | None, others_given: bool, reference: Reference
) -> ArgumentSpec:
    default = None if parameter.default is parameter.empty else parameter.default
    required = parameter.default is parameter.empty
    annotation = parameter.annotation if isinstance(parameter.annotation, str) else None
    if annotation is None and parameter.annotation is not parameter.empty:
        annotation = getattr(parameter.annotation, "__name__", str(parameter.annotation))
    common: dict[str, Any] = {
        "annotation": annotation,
        "required": required,
        "keyword_only": parameter.kind is parameter.KEYWORD_ONLY,
    }
    if spec is not None and spec.shape is not None and not _is_number(annotation, default):
        floating = spec.dtype in FLOATING
        return ArgumentSpec(parameter.name, "tensor", spec.shape, spec.dtype, spec.requires_grad and floating, **common)
    value = spec.value if spec is not None and spec.value is not None else default
    if isinstance(value, (bool, str)) or (value is None and not required):
        return ArgumentSpec(parameter.name, "static", value=value, default=default, **common)
    if value is not None or _is_number(annotation, default) or spec is not None or (others_given and required):
        return _scalar(parameter.name, value, default, annotation, common, reference)
    if not required:
        raise JobError(
            "bad_reference",
            f"{reference.entry} has an argument {parameter.name!r} with a default of type {type(default).__name__}.",
            "Arguments are tensors, numbers, booleans, strings or None.",
        )
    return ArgumentSpec(parameter.name, "tensor", ASSUMED_SHAPE, "float32", True, **common)


def _is_number(annotation: str | None, default: Any) -> bool:
    return annotation in ("float", "int") or (isinstance(default, (int, float)) and not isinstance(default, bool))


def _scalar(
    name: str, value: Any, default: Any, annotation: str | None, common: dict[str, Any], reference: Reference
) -> ArgumentSpec:
    if value is None:
        value = 3 if annotation == "int" else ASSUMED_SCALAR
    if not isinstance(value, (int, float)):
        raise JobError(
            "bad_reference",
            f"argument {name!r} of {reference.entry} is a {type(value).__name__}.",
            "Arguments are tensors, numbers, booleans, strings or None.",
        )
    # `def f(x, eps: float = 1)`: the annotation says what callers may pass.
    is_int = annotation == "int" or (annotation != "float" and isinstance(value, int))
    value = int(value) if is_int else float(value)
    return ArgumentSpec(name, "scalar", None, "int" if is_int else "float", value=value, default=default, **common)
