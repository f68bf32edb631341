import traceback

import interpreted  # noqa: F401  activates
import pytest
import torch
import triton
import triton.language as language
import triton.language as tl
from interpreted import elementwise
from triton.runtime.errors import InterpreterError

from tigon_tools.interpreter import UnsupportedOnCPU


@triton.jit
def both(x, y):
    return (x > 0 and y > 0).to(tl.float32)


@triton.jit
def either(x, y):
    return (x > 0 or y > 0).to(tl.float32)


@triton.jit
def neither(x, y):
    positive = x > 0
    return (not positive and not y > 0).to(tl.float32)


@triton.jit
def between(x, y):
    return (0 < x <= y).to(tl.float32)


@triton.jit
def pythons_maximum(x, y):
    return max(x, y, 0.5)


@triton.jit
def pythons_minimum(x, y):
    return min(x, y)


X = torch.tensor([1.0, 1.0, -1.0, -1.0])
Y = torch.tensor([2.0, -2.0, 2.0, -2.0])


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (both, [1, 0, 0, 0]),
        (either, [1, 1, 1, 0]),
        (neither, [0, 0, 0, 1]),
        (between, [1, 0, 0, 0]),
        (pythons_maximum, [2, 1, 2, 0.5]),
        (pythons_minimum, [1, -2, -1, -2]),
    ],
)
def test_logic_and_choice_are_element_by_element(kernel, expected):
    assert elementwise(kernel, X, Y).tolist() == expected


@triton.jit
def branch_on_a_block(x):
    if x > 0:
        return x
    return -x


@triton.jit
def choose_by_a_block(x):
    return x if x > 0 else -x


@triton.jit
def loop_on_a_block(x):
    while x > 0:
        x -= 1.0
    return x


@pytest.mark.parametrize("kernel", [branch_on_a_block, choose_by_a_block, loop_on_a_block])
def test_a_block_that_decides_a_branch_is_refused(kernel):
    with pytest.raises(InterpreterError, match=r"Use tl\.where"):
        elementwise(kernel, X)


@triton.jit
def scalar_kernel(z_ptr, a, b, FLAG: tl.constexpr, OFF: tl.constexpr):
    if a > 1 and b > 1:
        tl.store(z_ptr, 1)
    if not (a > 1 or b < 0):
        tl.store(z_ptr + 1, 1)
    if FLAG and not OFF:
        tl.store(z_ptr + 2, 1)
    if a < b < 10:
        tl.store(z_ptr + 3, 1)
    tl.store(z_ptr + 4, min(a, b) + max(2, 3))
    tl.store(z_ptr + 5, a if a > b else b)


@pytest.mark.parametrize("a", [0, 1, 2, 5])
@pytest.mark.parametrize("b", [-1, 0, 3, 12])
def test_scalars_are_pythons_logic(a, b):
    z = torch.zeros(6, dtype=torch.int32)

    scalar_kernel[(1,)](z, a, b, FLAG=True, OFF=False)

    expected = [a > 1 and b > 1, not (a > 1 or b < 0), True, a < b < 10, min(a, b) + 3, max(a, b)]
    assert z.tolist() == [int(one) for one in expected]


@triton.jit
def constant_decides_first_kernel(z_ptr, HAS_INPUT: tl.constexpr, x_ptr):
    if HAS_INPUT and tl.load(x_ptr) > 0:
        tl.store(z_ptr, 1)
    if not HAS_INPUT or tl.load(x_ptr) < 0:
        tl.store(z_ptr, 2)


def test_what_a_constant_rules_out_is_not_evaluated():
    z = torch.zeros(1)

    constant_decides_first_kernel[(1,)](z, HAS_INPUT=False, x_ptr=None)

    assert z.item() == 2


@triton.jit
def counter_kernel(z_ptr, start, stop, step, stride):
    place = 0
    for i in range(start, stop, step):
        tl.store(z_ptr + place, i.to(tl.int64) * stride)
        place += 1
    for k in tl.range(0, 2, num_stages=2):
        tl.store(z_ptr + place + k, k * 2**30 * 2)
    for s in tl.static_range(2):
        tl.store(z_ptr + place + 2 + s, s)


def test_counters_are_tensors_and_wrap():
    z = torch.zeros(7, dtype=torch.int64)

    counter_kernel[(1,)](z, 2, 7, 2, 2**31 - 1)

    assert z.tolist() == [2 * (2**31 - 1), 4 * (2**31 - 1), 6 * (2**31 - 1), 0, -(2**31), 0, 1]


@triton.jit
def wide_counter_kernel(z_ptr, start):
    for i in range(start, start + 2):
        tl.store(z_ptr, i)


def test_counters_have_their_bounds_type():
    z = torch.zeros(1, dtype=torch.int64)

    wide_counter_kernel[(1,)](z, 2**40)

    assert z.item() == 2**40 + 1


def test_variables_of_an_enclosing_function_are_seen():
    factor = 3.0

    @triton.jit
    def scaled(x):
        return x * factor

    assert elementwise(scaled, X).tolist() == [3.0, 3.0, -3.0, -3.0]


@triton.jit
def missing_import(x):
    return x * np.pi  # noqa: F821


def test_a_name_that_the_kernels_module_lacks_is_an_error():
    """The interpreter's own module has numpy; a kernel that relied on it would not compile."""
    with pytest.raises(InterpreterError, match="np"):
        elementwise(missing_import, X)


def test_a_kernel_without_source_is_refused():
    names = {"triton": triton, "tl": tl}
    exec("@triton.jit\ndef kernel(z_ptr):\n    tl.store(z_ptr, 1.0)\n", names)

    with pytest.raises(UnsupportedOnCPU, match="Define the kernel in a file"):
        names["kernel"][(1,)](torch.zeros(1))


def test_errors_point_to_the_kernels_own_line():
    with pytest.raises(InterpreterError) as raised:
        elementwise(missing_import, X)

    frames = traceback.extract_tb(raised.value.__cause__.__traceback__)
    decorator = missing_import.fn.__code__.co_firstlineno
    assert (frames[-1].filename, frames[-1].lineno) == (__file__, decorator + 2)


@triton.jit
def renamed_language_kernel(z_ptr, SIZE: language.constexpr, VALUE: language.constexpr = 2.0):
    language.store(z_ptr + language.arange(0, SIZE), VALUE)


def test_the_language_may_have_any_name():
    z = torch.zeros(4)

    renamed_language_kernel[(1,)](z, SIZE=4)

    assert z.tolist() == [2.0] * 4
