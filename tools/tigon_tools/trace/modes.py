"""What a reference's Python calls become while it is traced.

Two things must not get lost between Python and ATen: which casts the author wrote, and that a
scalar is an argument. Both are caught where the calls are still Python: in a `TorchFunctionMode`.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import DataDependentOutputException
from torch.overrides import TorchFunctionMode

from tigon_tools.schema.errors import JobError


@torch.library.custom_op("tigon::cast", mutates_args=())
def _cast(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A cast that the author wrote; an op of its own, so that tracing keeps it apart from promotion."""
    return x.to(dtype, copy=True)


@_cast.register_fake
def _(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty_like(x, dtype=dtype)


def _remember_dtype(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    ctx.dtype = inputs[0].dtype


def _cast_back(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
    return torch.ops.tigon.cast(gradient, ctx.dtype), None


_cast.register_autograd(_cast_back, setup_context=_remember_dtype)

CAST = torch.ops.tigon.cast.default

_TO_DTYPE: dict[Any, torch.dtype] = {
    torch.Tensor.float: torch.float32,
    torch.Tensor.half: torch.float16,
    torch.Tensor.bfloat16: torch.bfloat16,
    torch.Tensor.double: torch.float64,
}
_DTYPE_FIRST_CASTS = {
    F.softmax, F.log_softmax, torch.softmax, torch.log_softmax, torch.sum, torch.mean, torch.cumsum,
    torch.Tensor.softmax, torch.Tensor.log_softmax, torch.Tensor.sum, torch.Tensor.mean, torch.Tensor.cumsum,
}  # fmt: skip
"""Functions whose `dtype=` casts the input first."""

_TRUTH = {torch.Tensor.__bool__, torch.Tensor.item, torch.Tensor.__float__, torch.Tensor.__int__,
          torch.Tensor.__index__, torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.__array__}  # fmt: skip
"""Where a tensor's value would have to be known to go on."""


def cast_target(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> torch.dtype | None:
    """The dtype a call casts to, None if it is no cast."""
    if func in _TO_DTYPE:
        return _TO_DTYPE[func]
    if func is torch.Tensor.type_as:
        return args[1].dtype  # type: ignore[no-any-return]
    if func in (torch.Tensor.to, torch.Tensor.type):
        for value in itertools.chain(args[1:], kwargs.values()):
            if isinstance(value, torch.dtype):
                return value
            if isinstance(value, torch.Tensor):
                return value.dtype
    return None


def reference_line(filename: str) -> int | None:
    """The innermost line of the reference on the stack."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == filename:
            return int(frame.f_lineno)
        frame = frame.f_back
    return None


class ScalarMustBeFixed(Exception):
    """A scalar decides Python control flow, or a function takes it as a number only."""

    def __init__(self, names: Iterable[str], line: int | None) -> None:
        super().__init__(", ".join(names))
        self.names = tuple(names)
        self.line = line


MOST_CALLS = 1000
"""Of torch functions by a reference. Tracing and generating take about 20 ms each, so that this many are 20 s; the
longest of Liger's references, a poly norm, makes 30."""


class TracingMode(TorchFunctionMode):
    """Marks casts, keeps scalars symbolic, and names the line where neither is possible.

    scalars: the 0-dim tensors that stand for Python scalars, by name.
    in_place_line: of the last call that changed a tensor in place, once there was one.
    """

    def __init__(self, scalars: Mapping[str, torch.Tensor], filename: str) -> None:
        super().__init__()
        self._filename = filename
        self.in_place_line: int | None = None
        self._calls = 0
        # Tensors are kept as well as their ids: an id is only unique while its object lives.
        self._tainted: dict[int, tuple[torch.Tensor, frozenset[str]]] = {
            id(tensor): (tensor, frozenset({name})) for name, tensor in scalars.items()
        }

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        self._count()
        if _changes_in_place(func, kwargs):
            self.in_place_line = reference_line(self._filename)
        if func in _TRUTH:
            self._refuse_truth(func, args[0])
        target = cast_target(func, args, kwargs)
        if (
            target is not None
            and args[0].dtype != target
            and args[0].dtype.is_floating_point
            and target.is_floating_point
        ):
            return torch.ops.tigon.cast(args[0], target)
        if kwargs.get("dtype") is not None and func in _DTYPE_FIRST_CASTS:
            dtype = kwargs.pop("dtype")
            first = args[0] if args[0].dtype == dtype else torch.ops.tigon.cast(args[0], dtype)
            args = (first, *args[1:])
        result = self._call(func, args, kwargs)
        self._spread(args, kwargs, result)
        return result

    def _count(self) -> None:
        self._calls += 1
        if self._calls > MOST_CALLS:
            line = reference_line(self._filename)
            raise JobError(
                "untraceable",
                f"the reference calls more than {MOST_CALLS} torch functions (line {line} when it was stopped).",
                "A loop over rows or elements is traced step by step: write it for whole tensors.",
                line,
            )

    def _refuse_truth(self, func: Any, value: Any) -> None:
        line = reference_line(self._filename)
        names = self._names(value)
        if names:
            raise ScalarMustBeFixed(names, line)
        what = "reads a tensor's value in Python" if func is not torch.Tensor.__bool__ else "branches on a tensor"
        raise JobError(
            "untraceable",
            f"line {line} {what}: data-dependent control flow cannot be traced.",
            "Write the condition with torch.where, or split the reference.",
            line,
        )

    def _names(self, value: Any) -> frozenset[str]:
        known = self._tainted.get(id(value))
        return known[1] if known else frozenset()

    def _scalars_in(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> frozenset[str]:
        return frozenset().union(*(self._names(v) for v in _flat((args, tuple(kwargs.values())))))

    def _spread(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> None:
        """A 0-dim result of scalars alone is a scalar too."""
        if not isinstance(result, torch.Tensor) or result.dim() != 0:
            return
        tensors = [v for v in _flat((args, tuple(kwargs.values()))) if isinstance(v, torch.Tensor)]
        names = [self._names(tensor) for tensor in tensors]
        if names and all(names):
            self._tainted[id(result)] = (result, frozenset().union(*names))

    def _call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        names = self._scalars_in(args, kwargs)
        if not names:
            return func(*args, **kwargs)
        replacement = _WITH_TENSOR_SCALARS.get(func)
        if replacement is not None:
            return self._as_with_numbers(replacement(*args, **kwargs), args, kwargs)
        try:
            return self._as_with_numbers(func(*args, **kwargs), args, kwargs)
        except (TypeError, DataDependentOutputException) as problem:
            # "argument 'eps' must be float, not Tensor" and its kin: only a number will do.
            raise ScalarMustBeFixed(names, reference_line(self._filename)) from problem

    def _as_with_numbers(self, result: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The result in the dtype it has where the scalars are Python's numbers.

        A number among floats changes no dtype, and makes the default one of bools and integers. A 0-dim
        float64 tensor does so beside tensors with dimensions only, and makes float64 of bools and integers.
        """
        if not isinstance(result, torch.Tensor) or result.dtype != torch.float64 or kwargs.get("dtype") is not None:
            return result
        tensors = [v for v in _flat((args, tuple(kwargs.values()))) if isinstance(v, torch.Tensor)]
        others = [t.dtype for t in tensors if not self._names(t)]
        floats = [dtype for dtype in others if dtype.is_floating_point]
        if not others or torch.float64 in others:
            return result
        return result.to(functools.reduce(torch.promote_types, floats) if floats else torch.get_default_dtype())


_AUGMENTED = frozenset(
    "__iadd__ __isub__ __imul__ __itruediv__ __ifloordiv__ __imod__ __ipow__ __iand__ __ior__ __ixor__ __setitem__".split()
)


def _changes_in_place(func: Any, kwargs: Mapping[str, Any]) -> bool:
    name = getattr(func, "__name__", "")
    named_so = name.endswith("_") and not name.endswith("__")
    return named_so or name in _AUGMENTED or kwargs.get("inplace") is True or kwargs.get("out") is not None


def _flat(value: Any) -> Iterable[Any]:
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _flat(item)
    else:
        yield value


# The same functions in ops that take tensors where these take numbers only. Each is the
# definition in PyTorch's documentation, safe where a branch not taken would overflow; comparisons
# are the ones that PyTorch's kernels make, which decide what becomes of NaN.


def _leaky_relu(x: Any, negative_slope: Any = 0.01, inplace: bool = False) -> Any:
    return torch.where(x > 0, x, x * negative_slope)


def _elu(x: Any, alpha: Any = 1.0, inplace: bool = False) -> Any:
    return torch.where(x <= 0, alpha * torch.expm1(torch.clamp(x, max=0)), x)


def _celu(x: Any, alpha: Any = 1.0, inplace: bool = False) -> Any:
    return torch.where(x <= 0, alpha * torch.expm1(torch.clamp(x, max=0) / alpha), x)


def _softplus(x: Any, beta: Any = 1.0, threshold: Any = 20.0) -> Any:
    scaled = x * beta
    small = torch.where(scaled > threshold, 0.0, scaled)
    return torch.where(scaled > threshold, x, torch.log1p(torch.exp(small)) / beta)


def _threshold(x: Any, threshold: Any, value: Any, inplace: bool = False) -> Any:
    return torch.where(x <= threshold, value, x)


def _hardshrink(x: Any, lambd: Any = 0.5) -> Any:
    return torch.where((x >= -lambd) & (x <= lambd), 0.0, x)


def _softshrink(x: Any, lambd: Any = 0.5) -> Any:
    return torch.where(x > lambd, x - lambd, torch.where(x < -lambd, x + lambd, x * 0.0))


def _as_tensor(bound: Any) -> Any:
    return bound if bound is None or isinstance(bound, torch.Tensor) else torch.full((), bound, dtype=torch.float64)


def _clamp(x: Any, min: Any = None, max: Any = None) -> Any:
    return torch.ops.aten.clamp.Tensor(x, _as_tensor(min), _as_tensor(max))


def _hardtanh(x: Any, min_val: Any = -1.0, max_val: Any = 1.0, inplace: bool = False) -> Any:
    # Not clamp: at a limit itself hardtanh has no gradient, and clamp has.
    return torch.where(x <= min_val, min_val, torch.where(x >= max_val, max_val, x))


def _add(x: Any, y: Any, *, alpha: Any = 1) -> Any:
    return torch.ops.aten.add.Tensor(x, y * alpha) if isinstance(y, torch.Tensor) else x + y * alpha


def _sub(x: Any, y: Any, *, alpha: Any = 1) -> Any:
    return torch.ops.aten.sub.Tensor(x, y * alpha) if isinstance(y, torch.Tensor) else x - y * alpha


def _addcmul(x: Any, a: Any, b: Any, *, value: Any = 1) -> Any:
    return x + value * a * b


def _addcdiv(x: Any, a: Any, b: Any, *, value: Any = 1) -> Any:
    return x + value * a / b


def _full_like(x: Any, value: Any, **kwargs: Any) -> Any:
    return torch.zeros_like(x, **kwargs) + value


_WITH_TENSOR_SCALARS: dict[Any, Callable[..., Any]] = {
    F.leaky_relu: _leaky_relu,
    F.elu: _elu,
    F.celu: _celu,
    F.softplus: _softplus,
    F.threshold: _threshold,
    F.hardshrink: _hardshrink,
    F.softshrink: _softshrink,
    F.hardtanh: _hardtanh,
    torch.clamp: _clamp,
    torch.clip: _clamp,
    torch.Tensor.clamp: _clamp,
    torch.Tensor.clip: _clamp,
    torch.add: _add,
    torch.Tensor.add: _add,
    torch.sub: _sub,
    torch.Tensor.sub: _sub,
    torch.addcmul: _addcmul,
    torch.Tensor.addcmul: _addcmul,
    torch.addcdiv: _addcdiv,
    torch.Tensor.addcdiv: _addcdiv,
    torch.full_like: _full_like,
}


class ExactMode(TorchFunctionMode):
    """Runs a reference in float64 throughout: casts to narrower floats, which would round, are left out."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        target = cast_target(func, args, kwargs)
        if target is not None and target.is_floating_point and args[0].dtype == torch.float64:
            return args[0]
        if kwargs.get("dtype") is not None and func in _DTYPE_FIRST_CASTS and args[0].dtype == torch.float64:
            kwargs = {key: value for key, value in kwargs.items() if key != "dtype"}
        return func(*args, **kwargs)
