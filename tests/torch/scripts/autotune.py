# Tuning in its three forms. Which configuration wins differs from run to run, so that is not printed.
import tilelang
import tilelang.language as T
import torch
from tilelang.autotuner import AutoTuner, set_autotune_inputs
from tilelang.carver.arch import driver


def get_configs(N, **given):
    return [{"block": block, "threads": 128} for block in (32, 64, N)]


@tilelang.autotune(configs=get_configs, ref_prog=lambda a: a + 1, warmup=1, rep=1)
@tilelang.jit(out_idx=-1, pass_configs={})
def add_one(N, block=None, threads=None):

    @T.prim_func
    def main(A: T.Tensor((N,), T.float32), B: T.Tensor((N,), T.float32)):
        with T.Kernel(T.ceildiv(N, block), threads=threads) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] + 1

    return main


@tilelang.autotune(configs=[{"block": 32}, {"block": 64, "pass_configs": {"fast": True}}], warmup=1, rep=1)
@tilelang.jit
def scale(A, s: T.float32, block=32):
    N = T.const("N")
    A: T.Tensor((N,), T.float32)
    B = T.empty((N,), T.float32)
    with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
        for i in T.Parallel(block):
            B[bx * block + i] = A[bx * block + i] * s
    return B


def without_tuning_lines(text):
    return [line for line in text.split("\n") if not line.startswith("Tuned")]


x = torch.randn(128)
kernel = add_one(128)
torch.testing.assert_close(kernel(x), x + 1)
print(sorted(kernel.config), kernel.latency > 0, kernel.ref_latency > 0, add_one(128) is kernel)
given = add_one(128, block=64, threads=128)
print(bool((given(x) == x + 1).all()))

with set_autotune_inputs(x, 2.0):
    torch.testing.assert_close(scale(x, 3.0), x * 3)
    torch.testing.assert_close(scale(x, 3.0, __return_kernel=True)(x, 3.0), x * 3)
try:
    scale(torch.randn(64), 2.0)
except ValueError as error:
    print(error)


def plain(block=None):

    @T.prim_func
    def main(A: T.Tensor((64,), T.float32), B: T.Tensor((64,), T.float32)):
        with T.Kernel(T.ceildiv(64, block), threads=128) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * A[bx * block + i]

    return main


tuner = AutoTuner.from_kernel(kernel=plain, configs=[{"block": 16}, {"block": 32}])
tuner = tuner.set_compile_args(out_idx=[-1], target="auto")
tuner = tuner.set_profile_args(supply_type=tilelang.TensorSupplyType.Integer, ref_prog=lambda a: a * a)
result = tuner.run(warmup=1, rep=1)
print(result.latency > 0, result.ref_latency > 0, list(result.config), "main" in result.libcode)
print(result.kernel(x[:64]).shape)

wrong = AutoTuner.from_kernel(kernel=plain, configs=[{"block": 16}]).set_compile_args(out_idx=[-1])
for options, configs in (({"ref_prog": lambda a: a + 9}, [{"block": 16}]), ({}, [{"size": 3}]), ({}, [])):
    wrong.configs = configs
    try:
        wrong.set_profile_args(**options).run(warmup=1, rep=1)
    except (RuntimeError, ValueError) as error:
        print(type(error).__name__, str(error).split(":")[0])
print(driver.get_num_sms() >= 1)
