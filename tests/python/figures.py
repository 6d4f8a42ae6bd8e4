"""What the package costs: its import, a kernel that is in the cache, a call. Each is the least of many, since other work
of the machine only adds. usage: PYTHONPATH=build/package python tests/python/figures.py"""

import hashlib
import json
import pathlib
import subprocess
import sys
import time

IMPORT = "import time; begin = time.perf_counter(); import tilepilot; print(time.perf_counter() - begin)"
CACHED = """
import time, torch, tilepilot
begin = time.perf_counter()
tilepilot.load({path!r}).ModelNew()
print(time.perf_counter() - begin)
"""
PROGRAM = """
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn

def get_inputs():
    return [torch.randn(8, 8)]

class Model(nn.Module):
    def forward(self, x):
        return x + x

@tilelang.jit(out_idx=[-1])
def add(M, N):
    @T.prim_func
    def add_kernel(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(M, N):
                C[i, j] = A[i, j] + B[i, j]
    return add_kernel

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.add = add.compile(8, 8)

    def forward(self, x):
        return self.add(x, x)
"""


def written(folder):
    """The program with a certificate, in which it is its own model."""
    digest = hashlib.sha256(PROGRAM.encode()).hexdigest()
    (folder / "fast.py").write_text(PROGRAM)
    (folder / "fast.cert.json").write_text(json.dumps({
        "program": {"sha256": digest}, "model": {"file": "fast.py", "sha256": digest},
        "reference": {"inputs": [{"dtype": "float32", "shape": [8, 8]}]}, "verdict": {"target": "cpu"}}))
    return str(folder / "fast.py")


def in_process(program, runs=9):
    """The least of each number that the program prints."""
    outputs = [subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
               for _ in range(runs)]
    return [min(column) for column in zip(*(map(float, output.split()) for output in outputs))]


def call_time(call, calls=500, rounds=100):
    call()
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - begin) / calls)
    return min(times)


def main():
    import tempfile

    import torch
    with tempfile.TemporaryDirectory() as folder:
        path = written(pathlib.Path(folder))
        print(f"import tilepilot                    {in_process(IMPORT)[0] * 1e3:8.1f} ms")
        ready = in_process(CACHED.format(path=path))[0]
        print(f"load, with a kernel from the cache  {ready * 1e3:8.1f} ms")
        import tilepilot
        model = tilepilot.load(path).ModelNew()
    x = torch.randn(8, 8)
    with torch.no_grad():
        by_torch = call_time(lambda: torch.add(x, x))
        for name, call in (("kernel", lambda: model.add(x, x)), ("ModelNew", lambda: model(x))):
            spent = call_time(call)
            print(f"a call of the {name:<8}              {spent * 1e6:8.2f} us, beyond torch.add "
                  f"{(spent - by_torch) * 1e6:.2f} us")


if __name__ == "__main__":
    main()
