"""The package on a machine with a GPU: results, streams, CUDA graphs, errors, times. One line a check: ok, FAILED or
skipped; the exit status is 1 if one failed.

usage: PYTHONPATH=build/package python tests/python/on_gpu.py [--upstream CHECKOUT] [WORDS OF CHECKS...]
CHECKOUT: of tile-ai/tilelang, whose scripts are run as they are."""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings

import torch

import tilepilot
import tilepilot.tilelang.language as T
from tilepilot import tilelang
from tilepilot.targets import target_of_gpu

from figures import PROGRAM, call_time
from programs import added, dynamic_scale, matmul, scaled

SCRIPTS = ("elementwise/example_elementwise_add.py", "gemm/example_gemm.py", "flash_attention/example_mha_fwd_bshd.py",
           "norm/rms_norm.py")
LARGEST_OVERHEAD = 6e-6  # seconds of a call beyond an operator of torch


class Skipped(Exception):
    pass


def needs_cpp():
    if not any(map(shutil.which, ("c++", "g++", "clang++"))):
        raise Skipped("there is no C++ compiler for kernels of the processor")


def close(actual, expected, tolerance):
    assert actual.device == expected.device, f"{actual.device} and {expected.device}"
    difference = (actual.double() - expected.double()).abs().max().item()
    assert difference <= tolerance, f"differs by {difference:.3g}, and may by {tolerance:.3g}"
    return f"differs by {difference:.2g}"


@tilelang.jit(out_idx=[-1])
def softmax(M, N):
    @T.prim_func
    def softmax_rows(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(M, threads=128) as row:
            values = T.alloc_fragment((1, N), "float32")
            extreme = T.alloc_fragment((1,), "float32")
            T.copy(A[row, 0], values)
            T.reduce_max(values, extreme, dim=1)
            for i, j in T.Parallel(1, N):
                values[i, j] = T.exp(values[i, j] - extreme[i])
            T.reduce_sum(values, extreme, dim=1)
            for i, j in T.Parallel(1, N):
                B[row, j] = values[i, j] / extreme[i]

    return softmax_rows


@tilelang.jit(out_idx=[-1])
def attention(heads, length, width, block=64):
    shape = (heads, length, width)
    scale = width ** -0.5 * 1.4426950408889634

    @T.prim_func
    def attend(Q: T.Tensor(shape, "float16"), K: T.Tensor(shape, "float16"), V: T.Tensor(shape, "float16"),
               O: T.Tensor(shape, "float16")):
        with T.Kernel(T.ceildiv(length, block), heads, threads=128) as (bx, head):
            q = T.alloc_shared((block, width), "float16")
            k = T.alloc_shared((block, width), "float16")
            v = T.alloc_shared((block, width), "float16")
            scores = T.alloc_fragment((block, block), "float32")
            weights = T.alloc_fragment((block, block), "float16")
            result = T.alloc_fragment((block, width), "float32")
            largest = T.alloc_fragment((block,), "float32")
            before = T.alloc_fragment((block,), "float32")
            total = T.alloc_fragment((block,), "float32")
            part = T.alloc_fragment((block,), "float32")
            T.copy(Q[head, bx * block, 0], q)
            T.fill(result, 0)
            T.fill(total, 0)
            T.fill(largest, -T.infinity("float32"))
            for step in T.Pipelined(length // block, num_stages=2):
                T.copy(K[head, step * block, 0], k)
                T.clear(scores)
                T.gemm(q, k, scores, transpose_B=True)
                T.copy(largest, before)
                T.reduce_max(scores, largest, dim=1, clear=False)
                for i in T.Parallel(block):
                    before[i] = T.exp2((before[i] - largest[i]) * scale)
                for i, j in T.Parallel(block, block):
                    scores[i, j] = T.exp2((scores[i, j] - largest[i]) * scale)
                T.reduce_sum(scores, part, dim=1)
                for i in T.Parallel(block):
                    total[i] = total[i] * before[i] + part[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(block, width):
                    result[i, j] *= before[i]
                T.copy(V[head, step * block, 0], v)
                T.gemm(weights, v, result)
            for i, j in T.Parallel(block, width):
                result[i, j] /= total[i]
            T.copy(result, O[head, bx * block, 0])

    return attend


def check_elementwise():
    x = torch.randn(1024, 1024, device="cuda")
    return close(scaled(1024, 1024, 2.5)(x), x * 2.5, 1e-6)


def check_eager():
    a, b = torch.randn(2, 512, 256, device="cuda")
    return close(added(a, b), a + b, 0)


def check_matmul():
    kernel = matmul(1024, 1024, 1024, 128, 128, 64, "float16")
    a, b = (torch.randn(1024, 1024, device="cuda", dtype=torch.float16) for _ in range(2))
    return close(kernel(a, b), a.float() @ b.float(), 0.1)


def check_softmax():
    x = torch.randn(512, 1024, device="cuda")
    return close(softmax(512, 1024)(x), torch.softmax(x, 1), 1e-5)


def check_attention():
    q, k, v = (torch.randn(8, 512, 64, device="cuda", dtype=torch.float16) for _ in range(3))
    expected = torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float())
    return close(attention(8, 512, 64)(q, k, v), expected, 4e-3)


def check_dynamic_sizes():
    kernel = dynamic_scale()
    for rows in (4, 1000, 33):
        x = torch.randn(rows, 8, device="cuda")
        close(kernel(x, 3.0), x * 3, 1e-6)
    x = torch.randn(65, 8, device="cuda")[1:]  # begins elsewhere
    return close(kernel(x, 3.0), x * 3, 1e-6)


def check_both_devices():
    needs_cpp()
    kernel, x = scaled(64, 64, 2), torch.randn(64, 64)
    return close(kernel(x), x * 2, 0) + ", " + close(kernel(x.cuda()), x.cuda() * 2, 0)


@tilelang.jit(out_idx=[-1])
def summed_twice(M, N):
    @T.prim_func
    def through_workspace(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        between = T.alloc_global((M, N), "float32")
        with T.Kernel(M, threads=128) as row:
            for j in T.Parallel(N):
                between[row, j] = A[row, j] + 1.0
        with T.Kernel(M, threads=128) as row:
            for j in T.Parallel(N):
                B[row, j] = between[M - 1 - row, j] * 2.0

    return through_workspace


def check_workspaces_of_streams():
    """Two streams at once: each has a workspace of its own."""
    kernel, sides = summed_twice(2048, 2048), [torch.cuda.Stream() for _ in range(2)]
    inputs = [torch.full((2048, 2048), float(number), device="cuda") for number in (1, 2)]
    torch.cuda.synchronize()
    for _ in range(50):
        results = []
        for side, x in zip(sides, inputs):
            with torch.cuda.stream(side):
                results.append(kernel(x))
        torch.cuda.synchronize()
        for x, y in zip(inputs, results):
            close(y, (x + 1) * 2, 0)
    return "50 times"


def check_streams():
    """A launch comes after what its stream did before, and is on no other stream."""
    kernel, side = scaled(1024, 1024, 2.0), torch.cuda.Stream()
    x = torch.zeros(1024, 1024, device="cuda")
    kernel(x)
    torch.cuda.synchronize()
    for _ in range(20):
        x.zero_()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(2_000_000)
            x.fill_(3)
            y = kernel(x)
            assert not side.query(), "the host waited for the kernel"
        side.synchronize()
        close(y, torch.full_like(y, 6), 0)
    return "20 launches behind slow ones"


def check_graph_capture():
    kernel, x = matmul(256, 256, 256, 128, 128, 32, "float16"), torch.randn(256, 256, device="cuda").half()
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            kernel(x, x)
    except tilepilot.TilePilotError as error:
        assert "called for the first time" in str(error), error
    else:
        raise AssertionError("a kernel was compiled while a graph was captured")
    kernel(x, x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = kernel(x, x)
    for _ in range(3):
        x.copy_(torch.randn(256, 256))
        graph.replay()
        close(y, x.float() @ x.float(), 0.1)
    return "3 replays on other values"


def check_threads():
    """Threads with streams of their own."""
    failures = []

    def work(seed):
        try:
            kernel, stream = scaled(256, 256, 2.0), torch.cuda.Stream()
            with torch.cuda.stream(stream):
                for step in range(100):
                    x = torch.full((256, 256), float(seed + step), device="cuda")
                    close(kernel(x), x * 2, 0)
        except BaseException:
            failures.append(traceback.format_exc())

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    return "8 threads, 100 calls each"


def check_another_gpu():
    if torch.cuda.device_count() < 2:
        raise Skipped("there is one GPU")
    kernel = scaled(64, 64, 2)
    for number in (1, 0, 1):
        x = torch.randn(64, 64, device=f"cuda:{number}")
        close(kernel(x), x * 2, 0)
        assert torch.cuda.current_device() == 0 and torch.ones(1, device="cuda").device.index == 0
    try:
        added(torch.ones(8, 8, device="cuda:0"), torch.ones(8, 8, device="cuda:1"))
    except tilepilot.ArgumentError as error:
        return str(error).splitlines()[0]
    raise AssertionError("tensors on two GPUs were taken")


def check_errors():
    x = torch.randn(64, 64, device="cuda")
    program = scaled.func(64, 64, 2)
    on_gpu, on_cpu = (tilelang.compile(program, out_idx=-1, target=target) for target in ("cuda", "cpu"))
    wrong = [(on_gpu, x.cpu()), (on_cpu, x), (on_gpu, x.double()), (on_gpu, x[:32]), (on_gpu, x.t()),
             (on_gpu, x.clone().requires_grad_())]
    for kernel, tensor in wrong:
        try:
            kernel(tensor)
        except tilepilot.ArgumentError:
            continue
        raise AssertionError(f"{tensor.device} {tensor.dtype} {tuple(tensor.shape)} was taken")
    return close(on_gpu(x), x * 2, 0)


def check_fork():
    needs_cpp()
    scaled(64, 64, 2)(torch.randn(64, 64, device="cuda"))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            x = torch.randn(64, 64)
            status = 0 if torch.equal(scaled(64, 64, 2)(x), x * 2) else 1
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0, "the child cannot use the processor"
    return "the child uses the processor"


def check_torch_compile():
    kernel, x = scaled(64, 64, 2), torch.randn(64, 64, device="cuda")
    compiled = torch.compile(lambda value: kernel(value) + 1, fullgraph=True, backend="aot_eager")
    return close(compiled(x), x * 2 + 1, 1e-6)


def check_load():
    with tempfile.TemporaryDirectory() as folder:
        digest = hashlib.sha256(PROGRAM.encode()).hexdigest()
        path = pathlib.Path(folder) / "fast.py"
        path.write_text(PROGRAM)
        for target, falls_back in ((target_of_gpu(0), False), ("cpu", True)):
            path.with_suffix(".cert.json").write_text(json.dumps({
                "program": {"sha256": digest}, "model": {"file": "fast.py", "sha256": digest},
                "reference": {"inputs": [{"dtype": "float32", "shape": [8, 8]}]}, "verdict": {"target": target}}))
            model, x = tilepilot.load(path).ModelNew(), torch.randn(8, 8, device="cuda")
            with torch.no_grad(), warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                close(model(x), x + x, 0)
            assert bool(told) == falls_back, [str(each.message) for each in told]
    return f"kernels where verified on {target_of_gpu(0)}, else the reference"


def check_call_overhead():
    def spent(call):
        def some():
            torch.cuda.synchronize()
            return call_time(call, calls=200, rounds=1)
        return min(some() for _ in range(50))

    kernel = scaled(16, 16, 2.0)
    x = torch.randn(16, 16, device="cuda")
    with torch.no_grad():
        by_torch, by_kernel = spent(lambda: torch.mul(x, 2.0)), spent(lambda: kernel(x))
        by_eager = spent(lambda: added(x, x))
    text = (f"torch.mul {by_torch * 1e6:.2f} us, a kernel {by_kernel * 1e6:.2f} us, "
            f"an eager function {by_eager * 1e6:.2f} us: {(by_kernel - by_torch) * 1e6:.2f} us beyond torch")
    assert by_kernel - by_torch <= LARGEST_OVERHEAD, text
    return text


def check_profiler():
    kernel = matmul(2048, 2048, 2048, 128, 128, 64, "float16")
    profiler = kernel.get_profiler()
    x = torch.randn(2048, 2048, device="cuda").half()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        times = {backend: profiler.do_bench(backend=backend, input_tensors=[x, x])
                 for backend in ("event", "cupti", "cudagraph")}
    by_torch = profiler.do_bench(lambda a, b: a @ b, backend="cupti", input_tensors=[x, x])
    profiler.assert_allclose(lambda a, b: (a.float() @ b.float()).half(), atol=0.1)
    text = ", ".join(f"{name} {value * 1e3:.1f} us" for name, value in times.items())
    text += f"; torch {by_torch * 1e3:.1f} us" + "".join(f"; {each.message}" for each in told)
    assert 0 < times["cupti"] <= times["event"] * 1.05 and times["event"] < times["cupti"] * 2 + 0.02, text
    return text


def script_check(name):
    def check(checkout):
        if checkout is None:
            raise Skipped("--upstream names no checkout")
        script = pathlib.Path(checkout) / "examples" / name
        begin = time.perf_counter()
        run = subprocess.run([sys.executable, "-m", "tilepilot", str(script)], capture_output=True, text=True,
                             timeout=300, cwd=script.parent)
        assert run.returncode == 0, run.stderr[-2000:]
        return f"{time.perf_counter() - begin:.1f} s: {(run.stdout.splitlines() or ['nothing said'])[-1][:100]}"

    return check


def checks(checkout):
    for name, function in list(globals().items()):
        if name.startswith("check_"):
            yield name.removeprefix("check_").replace("_", " "), function
    for script in SCRIPTS:
        check = script_check(script)
        yield script, lambda check=check: check(checkout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--upstream")
    parser.add_argument("words", nargs="*")
    given = parser.parse_args()
    if not torch.cuda.is_available():
        print(f"{__file__}:1: Skipped\ntorch {torch.__version__} sees no GPU")
        return 0
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {target_of_gpu(0)}", flush=True)
    counts = {"ok": 0, "FAILED": 0, "skipped": 0}
    for name, check in checks(given.upstream):
        if given.words and not any(word in name for word in given.words):
            continue
        try:
            outcome, told = "ok", check()
        except Skipped as reason:
            outcome, told = "skipped", reason
        except Exception:
            outcome, told = "FAILED", traceback.format_exc()
        counts[outcome] += 1
        print(f"{outcome:<8}{name}: {told}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    return 1 if counts["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())
