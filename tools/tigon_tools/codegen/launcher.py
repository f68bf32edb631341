"""The text of the launchers: tensors to rows, outputs allocated, the kernel started."""

from __future__ import annotations

from collections.abc import Sequence

from tigon_tools.codegen.plan import Gradient, KernelPlan, OpsPlan, Scalar, Tensor
from tigon_tools.codegen.values import FloatTypes, Kind

MAX_BLOCK_SIZE = 2048
"""Elements of one program of a generated kernel; `calculate_settings` gives it 8 warps.

Measured by benchmarks/pointwise_launch.py on an H200 (bf16, four shapes, relu_squared, silu_mul, geglu): the mean
share of a device copy's bandwidth is 0.88 forward and 0.94 backward; 4096 has 0.85 and 0.91, 8192 has 0.75 and 0.77.
1024 with 4 warps is as fast (0.89, 0.95), but has twice the programs, which is what the interpreter pays for."""

ROWS = '''
def _as_rows(*tensors):
    """
    Broadcasts the tensors and views each of them as (n_rows, n_cols), with columns one element apart.

    If all are contiguous, everything is one row, so that short rows waste nothing. Otherwise each tensor keeps its own
    row stride: a half of `x.chunk(2, dim=-1)` is read where it is. Only a layout that has no such view is copied.
    """
    tensors = torch.broadcast_tensors(*tensors)
    shape = tensors[0].shape
    if all(tensor.is_contiguous() for tensor in tensors):
        return shape, [tensor.view(1, -1) for tensor in tensors]
    rows = [tensor.reshape(-1, shape[-1]) for tensor in tensors]
    return shape, [row if row.stride(-1) == 1 else row.contiguous() for row in rows]
'''.strip().splitlines()

DTYPES = """
def _check_dtypes(*tensors):
    for tensor in tensors:
        if tensor.dtype == torch.float64 or not tensor.is_floating_point():
            raise TypeError(f"This kernel computes in float32; an input of {tensor.dtype} is not supported.")
""".strip().splitlines()

PROMOTION = '''
def _result_dtype(*tensors):
    """As PyTorch promotes: tensors without dimensions count among themselves only."""
    dtypes = [tensor.dtype for tensor in tensors if tensor.dim() > 0] or [tensor.dtype for tensor in tensors]
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = torch.promote_types(result, dtype)
    return result
'''.strip().splitlines()


def shared_functions(plan: OpsPlan) -> list[list[str]]:
    """What the launchers call."""
    functions = [ROWS, DTYPES]
    if any(PROMOTED in line for line in (*forward_lines(plan), *backward_lines(plan))):
        functions.append(PROMOTION)
    return functions


def forward_lines(plan: OpsPlan) -> list[str]:
    """`<op>_forward`: the outputs, and what only the backward needs."""
    kernel = plan.forward
    arguments = ", ".join(argument.declaration for argument in plan.arguments)
    results = [f"{tensor.name}.view(shape)" for tensor, _ in kernel.outputs]
    tensors = frozenset(argument.name for argument in plan.arguments if argument.scalar is None)
    body = [*dtype_check(plan), *_shape_check(plan), *_launch(kernel, results, tensors)]
    return [f"def {plan.operation_name}_forward({arguments}):", *indented([*body, f"return {', '.join(results)}"])]


def dtype_check(plan: OpsPlan) -> list[str]:
    floating = [tensor.name for tensor in plan.forward.inputs if tensor.kind is Kind.FLOAT]
    return [f"_check_dtypes({', '.join(floating)})"] if floating else []


def _shape_check(plan: OpsPlan) -> list[str]:
    """PyTorch would give such an output a shape of its own, and the kernel covers one."""
    if not plan.narrow:
        return []
    lines = [f"shape = {_broadcast_shape(plan.shape_tensors)}"]
    for narrow in plan.narrow:
        names = [tensor.name for tensor in narrow.tensors]
        shapes = " and ".join(f"{name} {{tuple({name}.shape)}}" for name in names)
        lines += [
            f"if {_broadcast_shape(narrow.tensors)} != shape:",
            "    raise ValueError(",
            f'        f"{" and ".join(narrow.outputs)} would have the shape of {shapes}, "',
            f'        f"and all inputs together have {{tuple(shape)}}: expand {" and ".join(names)} before the call"',
            "    )",
        ]
    return lines


def _broadcast_shape(tensors: Sequence[Tensor]) -> str:
    shapes = ", ".join(f"{tensor.as_broadcast}.shape" for tensor in tensors)
    return shapes if len(tensors) == 1 else f"torch.broadcast_shapes({shapes})"


def backward_lines(plan: OpsPlan) -> list[str]:
    """`<op>_backward`: the gradient of each argument that has one."""
    scalars = [scalar.name for scalar in plan.backward.scalars]
    arguments = ", ".join([*plan.used_upstream, *plan.saved, *scalars])
    results = [_gradient(gradient, plan) for gradient in plan.gradients if gradient is not None]
    tensors = frozenset({*plan.used_upstream, *plan.saved})
    launch = _launch(plan.backward, results, tensors) if plan.backward.outputs else []
    return [
        f"def {plan.operation_name}_backward({arguments}):",
        *indented([*launch, f"return {', '.join(results)}"]),
    ]


def _gradient(gradient: Gradient, plan: OpsPlan) -> str:
    rows = {tensor.name for tensor in plan.backward.inputs} if plan.backward.outputs else set()
    if gradient.source == "kernel":
        return f"{gradient.tensor.name}.view(shape)"
    if gradient.source == "shared":
        return f"{gradient.upstream}.view(shape)"
    upstream = gradient.upstream or plan.used_upstream[0]
    text = upstream
    if gradient.source == "constant":
        text = f"torch.zeros_like({upstream})"
        if gradient.constant != 0:
            text = f"torch.full_like({upstream}, {gradient.constant!r})"
    return f"{text}.view(shape)" if upstream in rows else text


def indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" if line else "" for line in lines]


def _launch(kernel: KernelPlan, results: Sequence[str], launcher_tensors: frozenset[str]) -> list[str]:
    """Everything up to the results."""
    inputs = [tensor.name for tensor in kernel.inputs]
    first = inputs[0]
    outputs = [tensor for tensor, _ in kernel.outputs]
    dtypes = {tensor.name: dtype_of(tensor, kernel, launcher_tensors) for tensor in outputs}
    # Promotion looks at the shapes as well, so it comes before the rows.
    promoted = {name: dtype for name, dtype in dtypes.items() if "(" in dtype}
    before = [f"{name}_dtype = {dtype}" for name, dtype in promoted.items()]
    unpacked = f"({inputs[0]},)" if len(inputs) == 1 else f"({', '.join(inputs)})"
    allocations = [
        f"{name} = torch.empty({first}.shape, dtype={f'{name}_dtype' if name in promoted else dtype}, "
        f"device={first}.device)"
        for name, dtype in dtypes.items()
    ]
    views = ", ".join(tensor.as_broadcast for tensor in kernel.inputs)
    return [
        *before,
        f"shape, {unpacked} = _as_rows({views})",
        f"n_rows, n_cols = {first}.shape",
        *allocations,
        f"if {first}.numel() == 0:",
        f"    return {', '.join(results)}",
        "",
        "BLOCK_SIZE, num_warps = calculate_settings(min(n_cols, MAX_BLOCK_SIZE))",
        "grid = (n_rows * triton.cdiv(n_cols, BLOCK_SIZE),)",
        f"with device_context({first}.device):",
        f"    {kernel.name}[grid](",
        *(f"        {t}," for t in _kernel_arguments(outputs, kernel)),
        "    )",
    ]


def _kernel_arguments(outputs: Sequence[Tensor], kernel: KernelPlan) -> list[str]:
    tensors = [text for t in (*outputs, *kernel.inputs) for text in (t.name, f"{t.name}.stride(0)")]
    scalars = [_number(scalar) for scalar in kernel.scalars]
    return [*tensors, *scalars, "n_cols", "BLOCK_SIZE=BLOCK_SIZE", "num_warps=num_warps"]


def _number(scalar: Scalar) -> str:
    return f"{scalar.annotation}({scalar.name})"


def dtype_of(tensor: Tensor, kernel: KernelPlan, launcher_tensors: frozenset[str]) -> str:
    """The backward may lack the input that a gradient belongs to: another tensor has its dtype then.

    Where none has, the first upstream gradient's dtype is at least as wide, and autograd casts.
    """
    if all(name in launcher_tensors or name in _TORCH_NAMES for name in tensor.types):
        return dtype_expression(tensor.types)
    same = next((t for t in kernel.inputs if t.types == tensor.types), kernel.inputs[0])
    return f"{same.name}.dtype"


def dtype_expression(types: FloatTypes) -> str:
    """A storage type as the launcher writes it; promotion is left to PyTorch."""
    literal = [name for name in sorted(types) if name in _TORCH_NAMES]
    followed = [name for name in sorted(types) if name not in _TORCH_NAMES]
    if not literal and len(followed) == 2:
        return f"torch.result_type({', '.join(followed)})"
    if not literal and len(followed) > 2:
        return f"{PROMOTED}({', '.join(followed)})"
    terms = [*(f"{name}.dtype" for name in followed), *(f"torch.{name}" for name in literal)]
    text = terms[0]
    for term in terms[1:]:
        text = f"torch.promote_types({text}, {term})"
    return text


PROMOTED = "_result_dtype"

_TORCH_NAMES = frozenset("bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float8_e4m3fn float8_e5m2".split())
