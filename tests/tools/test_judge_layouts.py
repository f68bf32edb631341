"""Layouts are what PyTorch's own views give, and a write outside a tensor is seen wherever it lands."""

from __future__ import annotations

import pytest
import torch

from tigon_tools.judge.layouts import GUARD_ELEMENTS, guarded, offset_of, poison, strides_of


@pytest.mark.parametrize("shape", [(4, 6), (2, 3, 5)])
def test_strides_are_those_of_views(shape: tuple[int, ...]) -> None:
    wide = torch.empty(*shape[:-1], 2 * shape[-1])
    assert strides_of(shape, "halves") == wide.chunk(2, dim=-1)[0].stride()
    assert strides_of(shape, "alternate") == wide[..., ::2].stride()
    swapped = torch.empty(*shape[:-2], shape[-1], shape[-2]).transpose(-1, -2)
    assert strides_of(shape, "transposed") == swapped.stride()
    assert strides_of(shape, "expanded") == torch.empty(1, *shape[1:]).expand(shape).stride()
    assert strides_of(shape, "contiguous") == torch.empty(shape).stride()
    assert strides_of((7,), "alternate") == torch.empty(14)[::2].stride()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.bool])
@pytest.mark.parametrize("layout", ["contiguous", "halves", "transposed", "offset", "alternate", "expanded"])
def test_an_untouched_tensor_has_no_overrun(layout: str, dtype: torch.dtype) -> None:
    block = guarded((4, 6), strides_of((4, 6), layout), dtype, "cpu", offset_of(layout))
    assert block.tensor.shape == (4, 6)
    assert bool((block.tensor == poison(dtype)).all())
    assert block.overrun() is None
    if layout != "expanded":
        block.tensor.zero_()
        assert block.overrun() is None


@pytest.mark.parametrize("value", [0.0, float("nan"), float("inf")])
def test_writes_outside_are_seen(value: float) -> None:
    block = guarded((2, 5), strides_of((2, 5), "halves"), torch.float32, "cpu")
    memory = block.storage
    memory[GUARD_ELEMENTS + 15 + 6] = value
    assert block.overrun() == ("past the end", 7)
    memory[GUARD_ELEMENTS + 15 + 6] = poison(torch.float32)
    memory[GUARD_ELEMENTS - 3] = value
    assert block.overrun() == ("before the start", 3)
    memory[GUARD_ELEMENTS - 3] = poison(torch.float32)
    memory[GUARD_ELEMENTS + 5 : GUARD_ELEMENTS + 7] = value
    assert block.overrun() == ("between the rows", 2)


def test_a_tensor_without_elements_is_guarded() -> None:
    block = guarded((0, 64), (64, 1), torch.float32, "cpu")
    block.storage[GUARD_ELEMENTS] = 1.0
    assert block.overrun() == ("past the end", 1)
