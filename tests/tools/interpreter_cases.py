"""Kernels and inputs whose results a GPU and the repaired interpreter must agree on.

Run as a script it launches all of them and saves what they stored:

    python interpreter_cases.py RESULTS.pt            # compiled, on the GPU
    python interpreter_cases.py RESULTS.pt --cpu      # interpreted, on the CPU
"""

import hashlib
import sys

if "--cpu" in sys.argv:
    from tigon_tools.interpreter import activate

    activate()

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.1, -0.1, 3.0, -7.0, 255.5, -128.5, 448.0, 464.0, 480.0, 57344.0, 61440.0, 65504.0,
           65519.0, 65520.0, 1e5, -1e5, 3e9, -3e9, 1e19, -1e19, 1e30, 3.38e38, 3.4e38, 1e-5, 6e-8, 3e-8, 1e-20, 1e-39,
           float("inf"), float("-inf"), float("nan"), 2049.0, 2051.0, 257.0, 259.0, 1.00390625, 1.01171875]  # fmt: skip
"""Limits of each format, ties to even, denormals, and what is no number."""
SIZE = 256
FLOATS = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32, "fp64": torch.float64}
INTEGERS = {"i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8}
FLOAT8 = {"fp8e4nv": torch.float8_e4m3fn, "fp8e5": torch.float8_e5m2}


@triton.jit
def cast_kernel(x_ptr, y_ptr, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets).to(y_ptr.dtype.element_ty))


@triton.jit
def cast_towards_zero_kernel(x_ptr, y_ptr, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    y = tl.load(x_ptr + offsets).to(y_ptr.dtype.element_ty, fp_downcast_rounding="rtz")
    tl.store(y_ptr + offsets, y)


@triton.jit
def binary_kernel(x_ptr, y_ptr, z_ptr, OP: tl.constexpr, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    x = tl.load(x_ptr + offsets)
    y = tl.load(y_ptr + offsets)
    if OP == "add":
        z = x + y
    elif OP == "sub":
        z = x - y
    elif OP == "mul":
        z = x * y
    elif OP == "truediv":
        z = x / y
    elif OP == "floordiv":
        z = x // y
    elif OP == "mod":
        z = x % y
    elif OP == "max":
        z = tl.maximum(x, y)
    elif OP == "min":
        z = tl.minimum(x, y)
    elif OP == "max_nan":
        z = tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)
    elif OP == "less":
        z = (x < y).to(tl.float32)
    elif OP == "not_equal":
        z = (x != y).to(tl.float32)
    elif OP == "where":
        z = tl.where(x > 0, x, y)
    elif OP == "fma":
        z = tl.fma(x, y, x)
    elif OP == "clamp":
        z = tl.clamp(x, y * 0 - 1, y * 0 + 1)
    elif OP == "negate":
        z = -x
    elif OP == "abs":
        z = tl.abs(x)
    elif OP == "constant":
        z = x * 2.5 + 1
    elif OP == "umulhi":
        z = tl.umulhi(x, y)
    elif OP == "shift":
        z = (x >> 3) ^ (y << 2)
    elif OP == "logic":
        z = ((x > 0) & (y > 0) | (x == y)).to(tl.int32)
    tl.store(z_ptr + offsets, z)


@triton.jit
def argument_kernel(z_ptr, scale, count, big, flag, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    half = offsets.to(tl.float16)
    tl.store(z_ptr + offsets, half * scale)
    tl.store(z_ptr + offsets, scale.to(tl.float32) * 3, mask=offsets == 0)
    total = tl.full([], 0, tl.int64)
    for i in range(count):
        total += i.to(tl.int64) * 3
    tl.store(z_ptr + offsets, total.to(tl.float32), mask=offsets == 1)
    tl.store(z_ptr + offsets, (count * 1000000007).to(tl.float32), mask=offsets == 2)
    tl.store(z_ptr + offsets, (big * 3).to(tl.float32), mask=offsets == 3)
    if flag:
        tl.store(z_ptr + offsets, 5.0, mask=offsets == 4)


@triton.jit
def product_combine(x, y):
    return x * y


@triton.jit
def keep_last(x, y):
    return y


@triton.jit
def reduce_kernel(x_ptr, z_ptr, OP: tl.constexpr, SIZE: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, SIZE))
    if OP == "sum":
        z = tl.sum(x, axis=0)
    elif OP == "max":
        z = tl.max(x, axis=0)
    elif OP == "min":
        z = tl.min(x, axis=0)
    elif OP == "argmax":
        z = tl.argmax(x, axis=0)
    elif OP == "argmin":
        z = tl.argmin(x, axis=0)
    elif OP == "product":
        z = tl.reduce(x, 0, product_combine)
    elif OP == "rows":
        z = tl.sum(tl.max(tl.reshape(x, [SIZE // 16, 16]), axis=1), axis=0)
    tl.store(z_ptr, z)


@triton.jit
def scan_kernel(x_ptr, z_ptr, OP: tl.constexpr, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    x = tl.load(x_ptr + offsets)
    if OP == "cumsum":
        z = tl.cumsum(x, axis=0)
    elif OP == "cumsum_reverse":
        z = tl.cumsum(x, axis=0, reverse=True)
    elif OP == "cumprod":
        z = tl.cumprod(x, axis=0)
    elif OP == "scan":
        z = tl.associative_scan(x, 0, product_combine)
    elif OP == "sort":
        z = tl.sort(x)
    elif OP == "flip":
        z = tl.flip(x, 0)
    elif OP == "softmax":
        z = tl.softmax(x)
    elif OP == "sigmoid":
        z = tl.sigmoid(x)
    elif OP == "histogram":
        z = tl.histogram(x, SIZE)
    elif OP == "rand":
        z = tl.rand(1234, offsets)
    elif OP == "randint":
        z = tl.randint(1234, offsets)
    tl.store(z_ptr + offsets, z)


@triton.jit
def dot_kernel(x_ptr, y_ptr, z_ptr, K: tl.constexpr):
    rows = tl.arange(0, 16)
    along = tl.arange(0, K)
    x = tl.load(x_ptr + rows[:, None] * K + along[None, :])
    y = tl.load(y_ptr + along[:, None] * 16 + rows[None, :])
    tl.store(z_ptr + rows[:, None] * 16 + rows[None, :], tl.dot(x, y, input_precision="ieee"))


@triton.jit
def atomic_kernel(x_ptr, z_ptr, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    x = tl.load(x_ptr + offsets)
    tl.atomic_add(z_ptr + offsets, x, mask=offsets < SIZE - 3)


@triton.jit
def libdevice_kernel(x_ptr, z_ptr, OP: tl.constexpr, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    x = tl.load(x_ptr + offsets)
    if OP == "tanh":
        z = libdevice.tanh(x)
    elif OP == "rsqrt":
        z = libdevice.rsqrt(x)
    elif OP == "erf":
        z = libdevice.erf(x)
    elif OP == "expm1":
        z = libdevice.expm1(x)
    elif OP == "log1p":
        z = libdevice.log1p(x)
    elif OP == "pow":
        z = libdevice.pow(x, x)
    elif OP == "lgamma":
        z = libdevice.lgamma(x)
    elif OP == "tgamma":
        z = libdevice.tgamma(x)
    elif OP == "round":
        z = libdevice.round(x)
    elif OP == "rint":
        z = libdevice.rint(x)
    elif OP == "normcdf":
        z = libdevice.normcdf(x)
    elif OP == "erfinv":
        z = libdevice.erfinv(x)
    elif OP == "erfcx":
        z = libdevice.erfcx(x)
    elif OP == "sinpi":
        z = libdevice.sinpi(x)
    elif OP == "cospi":
        z = libdevice.cospi(x)
    elif OP == "j0":
        z = libdevice.j0(x)
    elif OP == "logb":
        z = libdevice.logb(x)
    elif OP == "ilogb":
        z = libdevice.ilogb(x).to(x.dtype)
    elif OP == "isnan":
        z = libdevice.isnan(x).to(tl.int1).to(x.dtype)
    elif OP == "float2int_rn":
        z = libdevice.float2int_rn(x).to(x.dtype)
    elif OP == "add_rz":
        z = libdevice.add_rz(x, x * 0.3)
    elif OP == "div_rd":
        z = libdevice.div_rd(x, x * x + 3.0)
    elif OP == "sqrt_ru":
        z = libdevice.sqrt_ru(x)
    elif OP == "mul_rz":
        z = libdevice.mul_rz(x, x * 1.1)
    elif OP == "remainder":
        z = libdevice.remainder(x, x * 0 + 0.7)
    elif OP == "exp10":
        z = libdevice.exp10(x)
    elif OP == "tl_exp":
        z = tl.exp(x)
    elif OP == "tl_log2":
        z = tl.log2(x)
    elif OP == "tl_erf":
        z = tl.erf(x)
    elif OP == "tl_rsqrt":
        z = tl.rsqrt(x)
    elif OP == "tl_sqrt":
        z = tl.sqrt(x)
    elif OP == "tl_sqrt_rn":
        z = tl.sqrt_rn(x)
    elif OP == "tl_div_rn":
        z = tl.div_rn(x, x * x)
    elif OP == "tl_exp2":
        z = tl.exp2(x)
    elif OP == "tl_sin":
        z = tl.sin(x)
    elif OP == "tl_floor":
        z = tl.floor(x)
    tl.store(z_ptr + offsets, z)


LIBDEVICE = ["tanh", "rsqrt", "erf", "expm1", "log1p", "pow", "lgamma", "tgamma", "round", "rint", "normcdf", "erfinv",
             "erfcx", "sinpi", "cospi", "j0", "logb", "ilogb", "isnan", "float2int_rn", "add_rz", "div_rd", "sqrt_ru",
             "mul_rz", "remainder", "exp10", "tl_exp", "tl_log2", "tl_erf", "tl_rsqrt", "tl_floor", "tl_sqrt",
             "tl_sqrt_rn", "tl_div_rn", "tl_exp2", "tl_sin"]  # fmt: skip
ARITHMETIC = ["add", "sub", "mul", "truediv", "max", "min", "max_nan", "less", "not_equal", "where", "clamp", "negate",
              "abs", "constant"]  # fmt: skip
INTEGER_ARITHMETIC = ["add", "sub", "mul", "floordiv", "mod", "max", "min", "less", "where", "negate", "abs",
                      "constant", "truediv", "shift", "logic"]  # fmt: skip


def numbers(dtype: torch.dtype, seed: int) -> torch.Tensor:
    """SIZE values of a type: the special ones first, then random ones of many magnitudes."""
    generator = torch.Generator().manual_seed(seed)
    special = torch.tensor(SPECIAL, dtype=torch.float64)
    special = special[torch.randperm(len(special), generator=generator)] if seed else special
    count = SIZE - len(special)
    magnitude = 10 ** (torch.rand(count, generator=generator, dtype=torch.float64) * 10 - 5)
    values = torch.cat([special, torch.randn(count, generator=generator, dtype=torch.float64) * magnitude])
    if dtype.is_floating_point:
        return values.to(dtype)
    limits = torch.iinfo(dtype)
    return torch.randint(limits.min, limits.max, (SIZE,), generator=generator, dtype=dtype)


def moderate(dtype: torch.dtype, seed: int) -> torch.Tensor:
    """SIZE values around one, exact in every format, so that the order of a sum does not matter."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.randint(-8, 9, (SIZE,), generator=generator) / 4).to(dtype)


def results(device: str) -> dict[str, torch.Tensor]:
    """Every case's output, or the text of the error it ends in."""
    found: dict[str, torch.Tensor | str] = {}

    def record(name, kernel, output, *arguments, **constants):
        outputs = output.clone().to(device)
        inputs = [one.to(device) if isinstance(one, torch.Tensor) else one for one in arguments]
        place = [outputs if one is OUT else one for one in inputs]
        try:
            kernel[(1,)](*place, **constants)
            found[name] = outputs.cpu()
        except Exception as problem:
            found[name] = f"{type(problem).__name__}: {problem}"

    OUT = object()
    kinds = {**FLOATS, **INTEGERS}
    for source, source_type in kinds.items():
        for target, target_type in {**kinds, **FLOAT8}.items():
            if target in FLOAT8 and source not in FLOATS:
                continue
            empty = torch.zeros(SIZE, dtype=target_type)
            record(f"cast {source} {target}", cast_kernel, empty, numbers(source_type, 0), OUT, SIZE=SIZE)
    for target in ("fp16", "bf16"):
        empty = torch.zeros(SIZE, dtype=kinds[target])
        record(f"cast_rtz fp32 {target}", cast_towards_zero_kernel, empty, numbers(torch.float32, 0), OUT, SIZE=SIZE)
    for name, dtype in FLOAT8.items():
        every = torch.arange(SIZE, dtype=torch.int32).to(torch.uint8).view(dtype)
        for target in FLOATS:
            record(f"cast {name} {target}", cast_kernel, torch.zeros(SIZE, dtype=kinds[target]), every, OUT, SIZE=SIZE)
    for name, dtype in FLOATS.items():
        for op in ARITHMETIC + ["fma"] * (name in ("fp32", "fp64")) + ["mod"] * (name in ("fp32", "fp64")):
            wide = torch.zeros(SIZE, dtype=torch.float64 if name == "fp64" else torch.float32)
            record(f"{op} {name}", binary_kernel, wide, numbers(dtype, 0), numbers(dtype, 1), OUT, OP=op, SIZE=SIZE)
    for name, dtype in INTEGERS.items():
        for op in INTEGER_ARITHMETIC + ["umulhi"] * (name in ("i32", "i64")):
            wide = torch.zeros(SIZE, dtype=torch.float32 if op in ("truediv", "constant", "less") else torch.int64)
            divisor = numbers(dtype, 1)
            divisor[divisor == 0] = 3
            record(f"{op} {name}", binary_kernel, wide, numbers(dtype, 0), divisor, OUT, OP=op, SIZE=SIZE)
    empty = torch.zeros(SIZE, dtype=torch.float32)
    record("arguments", argument_kernel, empty, OUT, 0.1, 7, 2**31 + 5, True, SIZE=SIZE)
    for name, dtype in {**FLOATS, "i32": torch.int32}.items():
        for op in ("sum", "max", "min", "argmax", "argmin", "rows"):
            one = torch.zeros(1, dtype=torch.float64)
            record(f"reduce {op} {name}", reduce_kernel, one, moderate(dtype, 0), OUT, OP=op, SIZE=SIZE)
        for op in ("cumsum", "cumsum_reverse", "sort", "flip"):
            many = torch.zeros(SIZE, dtype=torch.float64)
            record(f"{op} {name}", scan_kernel, many, moderate(dtype, 0), OUT, OP=op, SIZE=SIZE)
        if name != "fp64":
            atomic = moderate(dtype, 2)
            record(f"atomic {name}", atomic_kernel, atomic, numbers(dtype, 3), OUT, SIZE=SIZE)
    powers = 2.0 ** torch.randint(-1, 2, (SIZE,), generator=torch.Generator().manual_seed(1))
    for name in ("fp32", "bf16", "fp16"):
        one = torch.zeros(1, dtype=torch.float32)
        record(f"reduce product {name}", reduce_kernel, one, powers.to(FLOATS[name]), OUT, OP="product", SIZE=SIZE)
        record(f"scan {name}", scan_kernel, empty, powers.to(FLOATS[name]), OUT, OP="scan", SIZE=SIZE)
        record(f"sigmoid {name}", scan_kernel, empty, moderate(FLOATS[name], 0), OUT, OP="sigmoid", SIZE=SIZE)
    record("softmax", scan_kernel, empty, moderate(torch.float32, 0), OUT, OP="softmax", SIZE=SIZE)
    counts = torch.zeros(SIZE, dtype=torch.int64)
    picks = torch.randint(0, SIZE, (SIZE,), generator=torch.Generator().manual_seed(2), dtype=torch.int32)
    record("histogram", scan_kernel, counts, picks, OUT, OP="histogram", SIZE=SIZE)
    record("rand", scan_kernel, empty, picks, OUT, OP="rand", SIZE=SIZE)
    record("randint", scan_kernel, counts, picks, OUT, OP="randint", SIZE=SIZE)
    for name, dtype in {**FLOATS, **FLOAT8, "i8": torch.int8}.items():
        if name == "fp64":
            continue
        left = moderate(torch.float32, 4).repeat(2).to(dtype)
        right = moderate(torch.float32, 5).repeat(2).to(dtype)
        product = torch.zeros(256, dtype=torch.int32 if name == "i8" else torch.float32)
        record(f"dot {name}", dot_kernel, product, left, right, OUT, K=32)
    for name in ("fp32", "fp64"):
        for op in LIBDEVICE:
            output = torch.zeros(SIZE, dtype=FLOATS[name])
            record(f"{op} {name}", libdevice_kernel, output, numbers(FLOATS[name], 0), OUT, OP=op, SIZE=SIZE)
    return found


def digest(result: torch.Tensor | str) -> str:
    """What a result was, in 16 characters: equal numbers have equal digests, NaN is NaN, and zero has no sign."""
    if isinstance(result, str):
        return "refused"
    numbers = torch.where(result.double().isnan(), torch.tensor(float("nan"), dtype=torch.float64), result.double() + 0)
    return hashlib.sha256(numbers.numpy().tobytes()).hexdigest()[:16]


if __name__ == "__main__":
    torch.save(results("cpu" if "--cpu" in sys.argv else "cuda"), sys.argv[1])
