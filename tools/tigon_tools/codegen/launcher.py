"""The text of the launchers: tensors to rows, outputs allocated, the kernel started."""

from __future__ import annotations

from collections.abc import Sequence

from tigon_tools.codegen.plan import Gradient, KernelPlan, OpsPlan, Scalar, Tensor
from tigon_tools.codegen.values import FloatTypes

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
    if any(tensor.dtype == torch.float64 for tensor in tensors):
        raise TypeError("This kernel computes in float32; float64 tensors are not supported.")
    tensors = torch.broadcast_tensors(*tensors)
    shape = tensors[0].shape
    if all(tensor.is_contiguous() for tensor in tensors):
        return shape, [tensor.view(1, -1) for tensor in tensors]
    rows = [tensor.reshape(-1, shape[-1]) for tensor in tensors]
    return shape, [row if row.stride(-1) == 1 else row.contiguous() for row in rows]
'''.strip().splitlines()


def forward_lines(plan: OpsPlan) -> list[str]:
    """`<op>_forward`: the outputs, and what only the backward needs."""
    kernel = plan.forward
    arguments = ", ".join(argument.declaration for argument in plan.arguments)
    results = [f"{tensor.name}.view(shape)" for tensor, _ in kernel.outputs]
    tensors = frozenset(argument.name for argument in plan.arguments if argument.scalar is None)
    return [
        f"def {plan.operation_name}_forward({arguments}):",
        *_indented([*_shape_check(plan), *_launch(kernel, results, tensors), f"return {', '.join(results)}"]),
    ]


def _shape_check(plan: OpsPlan) -> list[str]:
    if not plan.narrow:
        return []
    lines = [f"shape = {_broadcast_shape([tensor.name for tensor in plan.forward.inputs])}"]
    for output, read in plan.narrow:
        lines += [
            f"if {_broadcast_shape(read)} != shape:",
            f'    raise ValueError("{output} depends on {" and ".join(read)} alone: broadcast before the call")',
        ]
    return lines


def _broadcast_shape(names: Sequence[str]) -> str:
    shapes = ", ".join(f"{name}.shape" for name in names)
    return shapes if len(names) == 1 else f"torch.broadcast_shapes({shapes})"


def backward_lines(plan: OpsPlan) -> list[str]:
    """`<op>_backward`: the gradient of each argument that has one."""
    scalars = [scalar.name for scalar in plan.backward.scalars]
    arguments = ", ".join([*plan.used_upstream, *plan.saved, *scalars])
    results = [_gradient(gradient, plan) for gradient in plan.gradients if gradient is not None]
    tensors = frozenset({*plan.used_upstream, *plan.saved})
    launch = _launch(plan.backward, results, tensors) if plan.backward.outputs else []
    return [
        f"def {plan.operation_name}_backward({arguments}):",
        *_indented([*launch, f"return {', '.join(results)}"]),
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


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" if line else "" for line in lines]


def _launch(kernel: KernelPlan, results: Sequence[str], launcher_tensors: frozenset[str]) -> list[str]:
    """Everything up to the results."""
    inputs = [tensor.name for tensor in kernel.inputs]
    first = inputs[0]
    outputs = [tensor for tensor, _ in kernel.outputs]
    dtypes = {tensor.name: _dtype(tensor, kernel, launcher_tensors) for tensor in outputs}
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


def _dtype(tensor: Tensor, kernel: KernelPlan, launcher_tensors: frozenset[str]) -> str:
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
    terms = [*(f"{name}.dtype" for name in followed), *(f"torch.{name}" for name in literal)]
    text = terms[0]
    for term in terms[1:]:
        text = f"torch.promote_types({text}, {term})"
    return text


_TORCH_NAMES = frozenset("bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float8_e4m3fn float8_e5m2".split())
