"""What `import tilepilot` costs and brings."""

IMPORT = """
import sys, time
begin = time.perf_counter()
import tilepilot
print((time.perf_counter() - begin) * 1000)
assert "torch" not in sys.modules and "numpy" not in sys.modules
"""


def test_import_is_quick_and_leaves_torch_alone(python):
    runs = [python(IMPORT) for _ in range(5)]
    assert all(run.returncode == 0 for run in runs), runs[0].stderr
    assert min(float(run.stdout) for run in runs) <= 150


def test_kernels_are_compiled_without_torch(python):
    program = """
import sys
from tilepilot import tilelang
import tilepilot.tilelang.language as T

@T.prim_func
def fill(A: T.Tensor((16,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(16):
            A[i] = 1.0

print(tilelang.compile(fill).get_kernel_source())
assert "torch" not in sys.modules
"""
    run = python(program)
    assert run.returncode == 0, run.stderr
    assert "static void fill" in run.stdout


def test_an_end_in_the_middle_of_a_compilation_is_no_crash(python):
    program = """
import threading, time
import torch
import tilepilot.tilelang.language as T
from tilepilot import tilelang

def compile_one(factor):
    @T.prim_func
    def scale(A: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(64, 64):
                A[i, j] = A[i, j] * factor
    tilelang.compile(scale).get_kernel_source()

for factor in range(3):
    threading.Thread(target=compile_one, args=(factor + 0.5,), daemon=True).start()
time.sleep(0.05)
print("ends")
"""
    run = python(program, TILEPILOT_CACHE="")
    assert run.returncode == 0 and run.stdout == "ends\n", run.stderr
