# What scripts do with a kernel beside calling it. No times are printed: they differ from run to run.
import tilelang
import tilelang.language as T
import torch
from tilelang.profiler import do_bench
from tilelang.utils.tensor import get_tensor_supply, torch_assert_close


@tilelang.jit(out_idx=[-1])
def scale(N, block, dtype=T.float32):

    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * 2

    return main


kernel = scale(256, 64)
print(kernel.params, kernel.out_idx, "B" in kernel.kernel_source)
x = torch.randn(256)
torch.testing.assert_close(kernel(x), x * 2)

profiler = kernel.get_profiler(tensor_supply_type=tilelang.TensorSupplyType.Normal)
profiler.assert_allclose(lambda a: a * 2, rtol=1e-3, atol=1e-3)
profiler.assert_consistent(repeat=2)
profiler.manual_assert_close(lambda a: a * 2, manual_check_prog=lambda ours, ref: print(len(ours), len(ref)))
print(profiler.run_once().shape, profiler(x).shape, profiler.func is kernel)
print(profiler.do_bench() > 0, profiler.do_bench(lambda a: a * 2, warmup=1, rep=1, return_mode="median") > 0)
print(len(profiler.do_bench(input_tensors=[x], n_warmup=1, n_repeat=3, quantiles=[0.2, 0.5])))
try:
    profiler.assert_allclose(lambda a: a * 3)
except AssertionError as error:
    print(str(error).split("\n")[0].split(":")[0])

calls = []
do_bench(lambda: calls.append(1), _n_warmup=2, _n_repeat=3)
print(len(calls))
for wrong in ({"return_mode": "sum"}, {"backend": "guess"}):
    try:
        do_bench(lambda: None, **wrong)
    except (AssertionError, ValueError) as error:
        print(error)

kernel.latency = 1.5
print(kernel.latency, tilelang.next_power_of_2(33))

for kind in tilelang.TensorSupplyType:
    made = get_tensor_supply(kind)(kernel.params[0])
    bounded = kind.name in ("Zero", "One", "Auto", "Uniform")
    print(kind.name, made.dtype, tuple(made.shape), bool((made.abs() <= 1).all()) if bounded else "")

print(torch_assert_close(x, x + 1e-4, rtol=0, atol=1e-3))
try:
    torch_assert_close(x.int() * 0 + 3, x.int() * 0 + 4, rtol=0, atol=0, verbose=True)
except AssertionError as error:
    print(str(error)[:230])
