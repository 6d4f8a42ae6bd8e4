"""`python -m tilepilot SCRIPT`: scripts that import `tilelang` run with this compiler."""

import subprocess
import sys

import pytest

KERNEL = """
import torch
import tilelang
import tilelang.language as T
from tilelang import language
from tilelang.autotuner import *
from tilelang.profiler import do_bench
from tilelang.utils.tensor import torch_assert_close


@tilelang.autotune(configs=[dict(block=4), dict(block=8)], warmup=1, rep=1)
@tilelang.jit(out_idx=[-1])
def double(M, N, block=None):
    @T.prim_func
    def kernel(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=32) as bx:
            for i, j in T.Parallel(block, N):
                B[bx * block + i, j] = A[bx * block + i, j] * 2
    return kernel


x = torch.randn(32, 16)
"""


@pytest.fixture
def script(tmp_path):
    def run(text, *arguments):
        file = tmp_path / "script.py"
        file.write_text(text)
        return subprocess.run([sys.executable, "-m", "tilepilot", str(file), *arguments], capture_output=True,
                              text=True, timeout=120, cwd=tmp_path)

    return run


def test_a_script_runs_as_it_is(script):
    run = script(KERNEL + """
if __name__ == "__main__":
    import sys
    kernel = double(32, 16)
    assert tilelang.compile(double.jit_impl.get_tir(32, 16, 4), out_idx=-1).torch_function(x).equal(x * 2)
    print(torch_assert_close(kernel(x), x * 2), kernel is double(32, 16), do_bench(lambda: kernel(x)) > 0, sys.argv[1:])
    print(tilelang.language is T, tilelang.JITKernel.__module__)
""", "--size", "3")
    assert run.stdout.splitlines() == ["True True True ['--size', '3']", "True tilepilot.tilelang.jit"], run.stderr


def test_the_processor_for_cuda(tmp_path):
    file = tmp_path / "script.py"
    file.write_text(KERNEL + """
import sys
kernel = double(32, 16, 4)
inputs = [torch.randn(32, 16, device="cuda"), x.cuda(), x.to("cuda"), torch.zeros(32, 16, device=torch.device("cuda:0"))]
print([torch.equal(kernel(each), each * 2) for each in inputs], {each.device.type for each in inputs}, sys.argv[1:])
""")
    run = subprocess.run([sys.executable, "-m", "tilepilot", "--cpu", str(file), "3"], capture_output=True, text=True)
    assert run.stdout == "[True, True, True, True] {'cpu'} ['3']\n", run.stderr


def test_tuning(script):
    run = script(KERNEL + """
with set_autotune_inputs(x):
    result = AutoTuner.from_kernel(lambda block: double(32, 16, block), [dict(block=8)]).run(warmup=1, rep=1)
print(result.config, result.latency > 0, torch.equal(result.kernel(x), x * 2))
for configs in [], [dict(width=1)]:
    try:
        tilelang.autotune(configs=configs)(tilelang.jit(lambda block: None))()
    except ValueError as error:
        print(error)
""")
    assert run.stdout.splitlines() == [
        "{'block': 8} True True", "No configurations to tune, please check your `@autotune` decorator",
        "Unused keys in config: {'width'}"], run.stderr


def test_tuning_leaves_out_what_computes_something_else(script):
    run = script(KERNEL + """
import itertools
made = itertools.count(1)

def reference(a):
    return a * (2 if next(made) > 1 else 3)  # the first configuration is wrong by it

tuned = tilelang.autotune(configs=[dict(block=4), dict(block=8)], ref_prog=reference, warmup=1, rep=1)(double.jit_impl)
print(tuned(32, 16).config)
print([kernel.out_idx for kernel in double.jit_impl.par_compile([(32, 16, 4), dict(M=32, N=16, block=8)])])
""")
    assert run.stdout.splitlines() == ["{'block': 8}", "[[1], [1]]"], run.stderr
    assert "Skipped {'block': 4}: AssertionError" in run.stderr, run.stderr


def test_differences_are_found(script):
    run = script("""
import torch
from tilelang.utils.tensor import torch_assert_close
for other in torch.ones(8) * 2, torch.ones(4), torch.ones(8).double():
    try:
        torch_assert_close(torch.ones(8), other)
    except AssertionError as error:
        print(str(error).splitlines()[0])
""")
    assert run.stdout.splitlines() == [
        "Too many mismatched elements: 8 > 0 (0.10% allowed, but get 100.00%).",
        "The values for attribute 'shape' do not match: torch.Size([8]) != torch.Size([4]).",
        "The values for attribute 'dtype' do not match: torch.float32 != torch.float64."], run.stderr


def test_its_tests_run(script):
    run = script(KERNEL + """
import tilelang.testing

@tilelang.testing.requires_cuda
def test_gpu():
    assert False

@tilelang.testing.requires_cuda_compute_version_ge(9, 0)
def test_hopper():
    assert False

def test_double():
    assert torch.equal(double(32, 16, 4)(x), x * 2)

if __name__ == "__main__":
    tilelang.testing.main()
""")
    assert "1 passed, 2 skipped" in run.stdout and run.returncode == 0, run.stdout + run.stderr


def test_what_is_not_there(script):
    assert "ModuleNotFoundError: `tilelang.nowhere`" in script("import tilelang.nowhere").stderr
    for arguments, said in (["nowhere.py"], "there is no file `nowhere.py`"), ([], "usage:"):
        run = subprocess.run([sys.executable, "-m", "tilepilot", *arguments], capture_output=True, text=True)
        assert said in run.stderr and run.returncode > 0


def test_modules_that_are_written_in_python(script):
    run = script("""
import torch
import tilelang
import tilelang.language as T
from tilelang import tvm
from tilelang.carver.arch import CUDA
from tilelang.carver.roller.rasterization import NoRasterization
from tilelang.carver.template import MatmulTemplate
from tilelang.contrib import nvcc
from tilelang.cuda.intrinsics.macro.mma_macro_generator import TensorCoreIntrinEmitter
from tilelang.engine.callback import register_cuda_postproc_callback
from tilelang.intrinsics import get_swizzle_layout
from tilelang.math import next_power_of_2
from tilelang.profiler.bench import do_bench
from tilelang.tileop.base import GemmWarpPolicy
from tilelang.tools import Analyzer
from tilelang.transform import simplify_prim_func
from tilelang.utils.target import determine_target
from tvm import DataType

assert nvcc.parse_compute_version(nvcc.get_target_compute_version(determine_target(return_object=True))) >= (8, 0)
assert determine_target("c") == "c" and determine_target().startswith("cuda -arch=sm_")
assert do_bench(lambda: None) >= 0

def factory(known):
    if known:
        size = 4

    @T.prim_func
    def kernel(A: T.Tensor[(8,), "float32"], n: T.int32):  # `size` has no value where it is not known
        with T.Kernel(1, threads=32):
            for i in T.Parallel(size if known else 8):
                A[i] = 0
    return kernel

factory(False)

@tvm.testing.requires_package("surely_not_there")
def test_nothing():
    pass

@T.prim_func
def double(A: T.Tensor((256, 256), "float32"), B: T.Tensor((256, 256), "float32")):
    with T.Kernel(32, threads=128) as bx:
        for i, j in T.Parallel(8, 256):
            B[bx * 8 + i, j] = A[bx * 8 + i, j] * 2

assert tilelang.env.TILELANG_CACHE_DIR.endswith("scripts")
hints = MatmulTemplate(M=1024, N=1024, K=1024, in_dtype="float16", out_dtype="float16",
                       accum_dtype="float32").with_arch(CUDA("cuda -arch=sm_90a")).recommend_hints(topk=3)
print(len(hints), next_power_of_2(5), nvcc.have_tma(), Analyzer.analysis(double, CUDA("cuda")).total_flops > 0)
""")
    assert run.stdout.splitlines() == ["3 8 True True"], run.stderr


def test_what_stands_in_for_cuda_on_the_processor(tmp_path):
    file = tmp_path / "script.py"
    file.write_text("""
import torch

assert torch.cuda.is_available() and torch.cuda.device_count() == 1
assert torch.cuda.get_device_capability() == (9, 0) and torch.cuda.get_device_properties(0).multi_processor_count > 0
assert torch.cuda.get_device_properties(0).shared_memory_per_multiprocessor > 0
assert torch.zeros(2, pin_memory=True).pin_memory().tolist() == [0, 0]
begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
torch.cuda.manual_seed(3)
with torch.cuda.stream(torch.cuda.Stream()):
    begin.record()
    layer = torch.nn.Linear(8, 8).cuda().to("cuda:0", torch.float64)
    x = torch.rand(2, 8, device="cuda", dtype=torch.float64, generator=torch.Generator("cuda").manual_seed(3))
    print(layer(x).device)
    end.record()
torch.cuda.synchronize()
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
    layer(x)
assert profiler.key_averages().table() == "no profile was recorded"
with torch.random.fork_rng():
    first = torch.rand(3, device="cuda")
assert torch.equal(first, torch.rand(3))
print(begin.elapsed_time(end) > 0)
""")
    run = subprocess.run([sys.executable, "-m", "tilepilot", "--cpu", str(file)], capture_output=True, text=True)
    assert run.stdout.splitlines() == ["cpu", "True"], run.stderr


def test_gradients_end_at_kernels_of_scripts(script):
    run = script(KERNEL + """
x.requires_grad_()
y = double(32, 16, 4)(x)
print(torch.equal(y, x * 2), y.requires_grad)
""")
    assert run.stdout.splitlines() == ["True False"], run.stderr


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_of_a_script_are_as_their_parent(tmp_path, method):
    file = tmp_path / "script.py"
    file.write_text(KERNEL + f"""
import multiprocessing

def work(number):
    given = torch.full((32, 16), number, device="cuda", requires_grad=True)
    return double(32, 16, 4)(given).sum().item()

if __name__ == "__main__":
    with multiprocessing.get_context("{method}").Pool(1) as pool:
        print(pool.map(work, [1.0, 2.0]))
""")
    run = subprocess.run([sys.executable, "-m", "tilepilot", "--cpu", str(file)], capture_output=True, text=True,
                         timeout=60)
    assert run.stdout == "[1024.0, 2048.0]\n", run.stderr
