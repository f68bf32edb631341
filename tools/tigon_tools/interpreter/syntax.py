"""Python that means something else on blocks: `and`, `or`, `not`, `if`, chains, `min`, `max`, and loops.

Cause: the interpreter runs a kernel's Python. Python asks a block for its truth, and the interpreter says
yes to every block, so `a and b` is `b`, `not a` is False, `lo <= x < hi` is `x < hi` (until 3.8),
`max(a, b)` is one of the two, and `if` takes the first branch, all without a word. A loop's counter is a
Python int, where the compiler makes it an int32 that wraps and has `.to()` (all versions).

A kernel without source text runs un-rewritten; one that uses variables of an enclosing function fails; and
all names of the interpreter's own module are put into a kernel's module, so a missing import does not show.

Cure: before a kernel runs for the first time, its statements are rewritten to what the compiler makes of
them: element-wise logic and `tl.maximum`, a refusal where a block would decide a branch (the compiler refuses
it too), and counters that are tensors. Only what the rewritten statements call is added to its globals.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from tigon_tools.interpreter.element_types import as_tensor
from tigon_tools.interpreter.refusal import UnsupportedOnCPU
from tigon_tools.interpreter.replacing import replace, require
from tigon_tools.interpreter.scalars import INT32


class BlockDecidesBranch(ValueError):
    """A branch or loop depends on a block; the compiler refuses it too."""

    def __init__(self) -> None:
        super().__init__(
            "A block of more than one element cannot decide a branch or a loop. "
            "Use tl.where, or reduce the block to a scalar first."
        )


def truth(value: Any) -> bool:
    """What `if value` goes by.

    Raises:
        BlockDecidesBranch: `value` is a block.
    """
    if _is_block(value) and value.handle.data.size > 1:
        raise BlockDecidesBranch
    return bool(value)


def _is_block(value: Any) -> bool:
    return isinstance(value, tl.tensor) and isinstance(value.type, tl.block_type)


def conjunction(*values: Callable[[], Any]) -> Any:
    return _logic(values, False, "logical_and")


def disjunction(*values: Callable[[], Any]) -> Any:
    return _logic(values, True, "logical_or")


def _logic(values: tuple[Callable[[], Any], ...], decided_by: bool, operation: str) -> Any:
    """As the compiler: constants decide at once, tensors are all evaluated and combined."""
    tensors = []
    last: Any = None
    for value in values:
        last = value()
        if isinstance(last, tl.tensor):
            tensors.append(last)
        elif bool(last) is decided_by:
            return last
    if not tensors:
        return last
    if not any(_is_block(one) for one in tensors):
        truths = [bool(one) for one in tensors]
        return as_tensor(np.array([any(truths) if decided_by else all(truths)]), tl.int1, [])
    combine = getattr(interpreter.interpreter_semantic, operation)
    result = tensors[-1]
    for one in reversed(tensors[:-1]):
        result = combine(*interpreter.interpreter_semantic.broadcast_impl_value(one, result))
    return result


def negation(value: Any) -> Any:
    if _is_block(value):
        return interpreter.interpreter_semantic.not_(value)
    return not value


def comparison_chain(first: Any, *links: tuple[Callable[[Any, Any], Any], Callable[[], Any]]) -> Any:
    """`a < b <= c`: neighbours compared, each operand evaluated once, the results joined by `and`."""
    results = []
    left = first
    for compare, operand in links:
        right = operand()
        results.append(compare(left, right))
        left = right
    return conjunction(*((lambda result=result: result) for result in results))


def called(function: Any, *arguments: Any, **named: Any) -> Any:
    """A call of something named `min` or `max`: Python's own are `tl.minimum` and `tl.maximum` of tensors."""
    tensors = any(isinstance(one, tl.tensor) for one in arguments)
    if not tensors or function not in (builtins.min, builtins.max) or named:
        return function(*arguments, **named)
    pairwise = tl.minimum if function is builtins.min else tl.maximum
    return functools.reduce(pairwise, arguments)


def counted(*bounds: Any, **options: Any) -> Iterator[Any]:
    """`range` or `tl.range` of a kernel: counters of the type that the bounds promote to, at least int32."""
    named = [options[name] for name in ("arg1", "arg2", "step") if options.get(name) is not None]
    limits = [getattr(one, "value", one) for one in (*bounds, *named)]
    dtype: Any = tl.int32
    for limit in limits:
        if isinstance(limit, tl.tensor):
            if limit.dtype.int_bitwidth == 64:
                dtype = limit.dtype
        elif limit not in INT32:
            dtype = tl.int64
    held = np.dtype(np.int32) if dtype is tl.int32 else np.dtype(np.int64 if dtype.is_int_signed() else np.uint64)
    for value in range(*(int(limit.__index__()) for limit in limits)):
        yield as_tensor(np.array([value]).astype(held), dtype, [])


def assigned(value: Any) -> Any:
    """What a name is bound to: the compiler makes tensors of constants (the interpreter's own rewriting)."""
    semantic: Any = interpreter.interpreter_semantic
    return semantic.to_tensor(value, False)


_IN_KERNELS: dict[str, Callable[..., Any]] = {
    f"_tigon_{function.__name__}": function
    for function in (truth, conjunction, disjunction, negation, comparison_chain, called, counted, assigned)
}
"""Functions that rewritten kernels call."""


def _call(name: str, arguments: list[ast.expr], keywords: list[ast.keyword] | None = None) -> ast.Call:
    return ast.Call(func=ast.Name(id=f"_tigon_{name}", ctx=ast.Load()), args=arguments, keywords=keywords or [])


def _later(expression: ast.expr, *parameters: str) -> ast.Lambda:
    names = [ast.arg(arg=name) for name in parameters]
    signature = ast.arguments(posonlyargs=[], args=names, kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(args=signature, body=expression)


class KernelRewriter(ast.NodeTransformer):
    """Rewrites one kernel's syntax tree; the transformer that the interpreter uses for all kernels."""

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        if len(node.targets) > 1:
            raise ValueError("Multiple assignments are not supported")
        self.generic_visit(node)
        node.value = _call("assigned", [node.value])
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        name = "conjunction" if isinstance(node.op, ast.And) else "disjunction"
        return ast.copy_location(_call(name, [_later(value) for value in node.values]), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return ast.copy_location(_call("negation", [node.operand]), node) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        links: list[ast.expr] = []
        for op, operand in zip(node.ops, node.comparators, strict=True):
            sides = ast.Name(id="left", ctx=ast.Load()), ast.Name(id="right", ctx=ast.Load())
            compare = _later(ast.Compare(left=sides[0], ops=[op], comparators=[sides[1]]), "left", "right")
            links.append(ast.Tuple(elts=[compare, _later(operand)], ctx=ast.Load()))
        return ast.copy_location(_call("comparison_chain", [node.left, *links]), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
            return ast.copy_location(_call("called", [node.func, *node.args], node.keywords), node)
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        return self._decided(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return self._decided(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        return self._decided(node)

    def _decided(self, node: ast.If | ast.IfExp | ast.While) -> ast.AST:
        self.generic_visit(node)
        node.test = ast.copy_location(_call("truth", [node.test]), node.test)
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        loop = node.iter
        if isinstance(loop, ast.Call) and _is_range(loop.func):
            node.iter = ast.copy_location(_call("counted", loop.args, loop.keywords), loop)
        return node


def _is_range(function: ast.expr) -> bool:
    return (isinstance(function, ast.Name) and function.id == "range") or (
        isinstance(function, ast.Attribute) and function.attr == "range"
    )


def rewritten(rewriter: Any) -> Any:
    """The function that runs in a kernel's place.

    Raises:
        UnsupportedOnCPU: the kernel's source cannot be read, so it can neither be rewritten nor compiled.
    """
    function = rewriter.fn
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError) as problem:
        raise UnsupportedOnCPU(
            f"The source of {function.__name__} cannot be read, and the compiler needs it too. "
            "Define the kernel in a file."
        ) from problem
    tree = ast.parse(textwrap.dedent("".join(lines)))
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise UnsupportedOnCPU(f"{function.__name__} is not defined by `def`. Write the kernel as a function.")
    definition.decorator_list = []
    tree = ast.fix_missing_locations(KernelRewriter().visit(tree))
    ast.increment_lineno(tree, first - 1)
    names = function.__globals__
    enclosing = inspect.getclosurevars(function).nonlocals
    if enclosing:
        names = {**names, **enclosing}
    names.update(_IN_KERNELS)
    defined: dict[str, Any] = {}
    file = inspect.getsourcefile(function) or "<kernel>"
    # With this module's own flags the annotations would be strings, and `language.constexpr` be taken for a type.
    flags = function.__code__.co_flags & __future__.annotations.compiler_flag
    exec(compile(tree, file, "exec", flags, dont_inherit=True), names, defined)
    return defined[function.__name__]


def repair() -> None:
    require(interpreter, "interpreter_semantic")
    replace(interpreter.FunctionRewriter, "rewrite_ast", rewritten)
