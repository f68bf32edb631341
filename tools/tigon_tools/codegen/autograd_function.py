"""The text of the `torch.autograd.Function`."""

from __future__ import annotations

from tigon_tools.codegen.plan import OpsPlan


def function_lines(plan: OpsPlan) -> list[str]:
    signature = ", ".join(argument.declaration for argument in plan.arguments)
    return [
        f"class {plan.function_class_name}(torch.autograd.Function):",
        *_fixed_arguments(plan),
        "    @staticmethod",
        f"    def forward(ctx, {signature}):",
        *(f"        {line}" for line in _forward(plan)),
        "",
        "    @staticmethod",
        f"    def backward(ctx, {', '.join(plan.upstream)}):",
        *(f"        {line}" for line in _backward(plan)),
    ]


def _fixed_arguments(plan: OpsPlan) -> list[str]:
    if not plan.fixed:
        return []
    values = ", ".join(f"{name}={value}" for name, value in plan.fixed)
    return [f"    # generated for {values}", ""]


def _forward(plan: OpsPlan) -> list[str]:
    results = ", ".join((*plan.outputs, *plan.intermediates))
    call = ", ".join(argument.name for argument in plan.arguments)
    lines = [f"{results} = {plan.operation_name}_forward({call})"]
    if plan.saved:
        lines.append(f"ctx.save_for_backward({', '.join(plan.saved)})")
    lines += [f"ctx.{scalar.name} = {scalar.name}" for scalar in plan.backward.scalars]
    if plan.non_differentiable:
        lines.append(f"ctx.mark_non_differentiable({', '.join(plan.non_differentiable)})")
    return [*lines, f"return {', '.join(plan.outputs)}"]


def _refuse_second_derivative(plan: OpsPlan) -> list[str]:
    """What a kernel makes has no graph. PyTorch's `once_differentiable` notices only where an upstream gradient
    needs a gradient itself, and lets the gradient of `y.sum()` pass as a constant."""
    return [
        "if torch.is_grad_enabled():  # by create_graph=True",
        f'    raise RuntimeError("{plan.function_class_name} has no second derivative; leave create_graph out")',
    ]


def _backward(plan: OpsPlan) -> list[str]:
    lines = _refuse_second_derivative(plan) if plan.backward.outputs else []
    if len(plan.saved) == 1:
        lines.append(f"({plan.saved[0]},) = ctx.saved_tensors")
    elif plan.saved:
        lines.append(f"{', '.join(plan.saved)} = ctx.saved_tensors")
    scalars = [f"ctx.{scalar.name}" for scalar in plan.backward.scalars]
    call = ", ".join([*plan.used_upstream, *plan.saved, *scalars])
    names = [gradient.tensor.name for gradient in plan.gradients if gradient is not None]
    lines.append(f"{', '.join(names)} = {plan.operation_name}_backward({call})")
    returned = [gradient.tensor.name if gradient is not None else "None" for gradient in plan.gradients]
    return [*lines, f"return {', '.join(returned)}"]
