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
        "{'block': 8} True True", "there are no configurations to tune",
        "the configurations have `width`, which the function has not"], run.stderr


def test_tuning_names_what_it_ignores(script):
    run = script(KERNEL + """
tilelang.autotune(configs=[dict(block=4)], ref_prog=lambda x: x * 2, verbose=True)(tilelang.jit(lambda block: None))
AutoTuner.from_kernel(lambda block: double(32, 16, block), [dict(block=8)]).run(warmup=1, rep=1, timeout=5)
""")
    assert "`ref_prog` has no effect on tuning here" in run.stderr and "`verbose` has" not in run.stderr, run.stderr
    assert "`timeout` has no effect on tuning here" in run.stderr, run.stderr


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
    assert run.stdout.splitlines() == ["8 of 8 elements differ", "the shapes are (8,) and (4,)",
                                       "the dtypes are torch.float32 and torch.float64"], run.stderr


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
        assert said in run.stderr and run.returncode == 1
