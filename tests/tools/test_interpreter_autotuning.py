import interpreted  # noqa: F401  activates
import pytest
import torch
import triton
import triton.language as tl

CONFIGS = [triton.Config({"BLOCK": 4}, num_warps=2), triton.Config({"BLOCK": 8}, num_warps=4)]


def tuned(**options):
    @triton.autotune(configs=CONFIGS, key=["count"], **options)
    @triton.jit
    def kernel(x_ptr, block_ptr, count, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < count)
        tl.store(x_ptr + offsets, x + 1, mask=offsets < count)
        tl.store(block_ptr, BLOCK)

    return kernel


def run(kernel) -> tuple[torch.Tensor, int]:
    x, block = torch.zeros(10), torch.zeros(1, dtype=torch.int32)
    kernel[lambda meta: (triton.cdiv(10, meta["BLOCK"]),)](x, block, 10)
    return x, int(block)


def test_the_first_configuration_is_taken_and_the_kernel_runs_once():
    x, block = run(tuned())

    assert block == 4
    assert x.tolist() == [1.0] * 10


def test_pruning_decides_what_is_first():
    def prune(configs, arguments, **named):
        assert arguments["count"] == 10
        return [config for config in configs if config.kwargs["BLOCK"] == 8]

    assert run(tuned(prune_configs_by={"early_config_prune": prune}))[1] == 8


def test_a_performance_model_decides_what_is_first():
    model = {"perf_model": lambda BLOCK, **named: -BLOCK, "top_k": 1}

    assert run(tuned(prune_configs_by=model))[1] == 8


def test_a_configurations_hook_runs_before_the_launch():
    calls = []
    config = triton.Config({"BLOCK": 16}, pre_hook=lambda arguments: calls.append(arguments["BLOCK"]))

    @triton.autotune(configs=[config, *CONFIGS], key=["count"])
    @triton.jit
    def kernel(x_ptr, block_ptr, count, BLOCK: tl.constexpr):
        tl.store(block_ptr, BLOCK)

    assert run(kernel)[1] == 16
    assert calls == [16]


def test_an_argument_that_is_tuned_cannot_be_passed():
    with pytest.raises(ValueError, match="BLOCK"):
        tuned()[(1,)](torch.zeros(10), torch.zeros(1), 10, BLOCK=4)


@triton.heuristics({"WHOLE": lambda arguments: arguments["count"] % arguments["BLOCK"] == 0})
@triton.jit
def heuristic_kernel(z_ptr, count, BLOCK: tl.constexpr, WHOLE: tl.constexpr):
    tl.store(z_ptr, 1 if WHOLE else 2)


@pytest.mark.parametrize(("count", "expected"), [(8, 1), (9, 2)])
def test_heuristics(count, expected):
    z = torch.zeros(1)

    heuristic_kernel[(1,)](z, count, BLOCK=4)

    assert z.item() == expected
