"""Dataclass to JSON and back, checked against the annotations.

Only what the schema uses is understood: dataclasses, tuples of one type, dicts with string keys,
unions, and JSON's own scalars. Anything else is an error where the message is read, not later.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any, TypeVar

T = TypeVar("T")


class WireError(ValueError):
    """A message does not fit its dataclass; the text names the field."""


def to_wire(value: Any) -> Any:
    """A dataclass (or a tuple or dict of them) as JSON values."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_wire(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, (list, tuple)):
        return [to_wire(item) for item in value]
    if isinstance(value, dict):
        return {str(key): to_wire(item) for key, item in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise WireError(f"{type(value).__name__} is not part of the schema")


def from_wire(cls: type[T], value: Any) -> T:
    """JSON values as `cls`.

    Raises:
        WireError: an unknown or missing field, or a value of another type; names the field.
    """
    return typing.cast(T, _read(cls, value, cls.__name__))


def _read(annotation: Any, value: Any, where: str) -> Any:
    if dataclasses.is_dataclass(annotation):
        return _read_dataclass(typing.cast(type, annotation), value, where)
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        return _read_union(typing.get_args(annotation), value, where)
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise WireError(f"{where}: expected a list, not {type(value).__name__}")
        item = typing.get_args(annotation)[0]
        return tuple(_read(item, entry, f"{where}[{i}]") for i, entry in enumerate(value))
    if origin is dict:
        if not isinstance(value, dict):
            raise WireError(f"{where}: expected an object, not {type(value).__name__}")
        item = typing.get_args(annotation)[1]
        return {str(key): _read(item, entry, f"{where}.{key}") for key, entry in value.items()}
    return _read_scalar(annotation, value, where)


def _read_dataclass(cls: type, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise WireError(f"{where}: expected an object, not {type(value).__name__}")
    hints = typing.get_type_hints(cls)
    fields = {f.name: f for f in dataclasses.fields(cls)}
    unknown = sorted(set(value) - set(fields))
    if unknown:
        raise WireError(f"{where}: unknown field {unknown[0]!r}")
    arguments = {name: _read(hints[name], item, f"{where}.{name}") for name, item in value.items()}
    for name, f in fields.items():
        no_default = f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        if name not in arguments and no_default:
            raise WireError(f"{where}: field {name!r} is missing")
    return cls(**arguments)


def _read_union(options: tuple[Any, ...], value: Any, where: str) -> Any:
    # An exact match first: an int must not become a float where both are allowed.
    for option in options:
        if option is type(value) or (value is None and option is type(None)):
            return value
    problems = []
    for option in options:
        if option is type(None):
            continue
        try:
            return _read(option, value, where)
        except WireError as problem:
            problems.append(str(problem))
    raise WireError(problems[0] if problems else f"{where}: unexpected {type(value).__name__}")


def _read_scalar(annotation: Any, value: Any, where: str) -> Any:
    if annotation is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if annotation is Any or (
        isinstance(annotation, type) and isinstance(value, annotation) and not (annotation is int and value is True)
    ):
        return value
    raise WireError(f"{where}: expected {getattr(annotation, '__name__', annotation)}, not {type(value).__name__}")
