"""Kernels for GPUs, as far as a machine without one can show: their code, and what their calls ask of the driver, for
which a library of our own stands."""

import json
import os
import pathlib
import re
import subprocess

import pytest
import tilepilot
import torch
from tilepilot import tilelang, verified_model
from tilepilot.loading import Evidence
from tilepilot.targets import target_named
from tilepilot.verified_model import Verification

from programs import dynamic_scale, matmul, scaled

FAKE_LIBRARY = pathlib.Path(__file__).parents[1] / "fake_library.h"
without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU: tests/python/on_gpu.py runs there")


def program_of(function, *args, **kwargs):
    return function.func(*args, **kwargs)


def code_of(target, *args):
    try:
        return tilelang.compile(program_of(matmul, *args), out_idx=-1, target=target).get_kernel_source()
    except tilepilot.ToolchainError as error:
        if error.kind == "nvrtc_missing":
            pytest.skip("NVRTC is not installed")
        raise


@pytest.mark.parametrize("given, ours", [
    ("auto", "auto"), (None, "auto"), ("llvm", "cpu"), ("cuda", "cuda"), ("cuda -arch=sm_90", "cuda:sm_90a"),
    ({"kind": "cuda", "arch": "sm_86"}, "cuda:sm_80"), ("cuda:sm_90a", "cuda:sm_90a")])
def test_targets_by_upstreams_names(given, ours, monkeypatch):
    monkeypatch.delenv("TILEPILOT_TARGET", raising=False)
    assert target_named(given) == ours


@pytest.mark.parametrize("target", ["hip", "cuda:sm_70", "cuda -arch=sm_100"])
def test_targets_that_are_not_there(target, monkeypatch):
    monkeypatch.delenv("TILEPILOT_TARGET", raising=False)
    with pytest.raises(tilepilot.CompileError, match="is not available"):
        target_named(target)


@without_gpu
def test_code_for_a_named_gpu_needs_none():
    assert "wgmma" in code_of("cuda:sm_90a", 256, 256, 256, 128, 128, 32, "float16")
    assert "wgmma" not in code_of("cuda:sm_80", 256, 256, 256, 128, 128, 32, "float16")


@without_gpu
def test_without_a_gpu_a_kernel_for_one_is_refused():
    kernel = tilelang.compile(program_of(scaled, 16, 16, 2), out_idx=-1, target="cuda")
    with pytest.raises(tilepilot.ToolchainError) as caught:
        kernel.get_kernel_source()
    assert caught.value.kind == "driver_missing"


def test_tensors_of_the_processor_are_refused_by_kernels_for_a_gpu():
    kernel = tilelang.compile(program_of(scaled, 16, 16, 2), out_idx=-1, target="cuda")
    with pytest.raises(tilepilot.ArgumentError, match="`A` is on `cpu`, and the kernel `scale` is compiled for the "
                                                      "target `cuda`"):
        kernel(torch.ones(16, 16))


def test_kernels_of_different_targets_are_different_operators():
    program = program_of(scaled, 16, 16, 2)
    kernels = [tilelang.compile(program, out_idx=-1, target=target) for target in ("cpu", "cuda", "auto", "cpu")]
    assert len({kernel.operator for kernel in kernels}) == 3
    assert [kernel.target for kernel in kernels] == ["cpu", "cuda", "auto", "cpu"]


# A driver for which GPU memory is the process's own. A launch doubles 256 numbers, and writes down what it was.
LAUNCH = """
#include <cstdio>
#include <cstdlib>
extern "C" int cuMemAlloc_v2(unsigned long long* address, unsigned long long) {
  static unsigned long long next = 0;
  *address = next += 4096;
  return 0;
}
extern "C" int cuLaunchKernelEx(const Configuration* c, void*, void** parameters, void**) {
  const float* a = *(float**)parameters[0];
  float* b = *(float**)parameters[1];
  if (a == b) return 719;
  for (int i = 0; i < 256; ++i) b[i] = 2 * a[i];
  printf("grid %u threads %u stream %ld", c->grid[0], c->threads[0], (long)c->stream);
  if (getenv("WORKSPACE")) printf(" workspace %ld", *(long*)parameters[2]);
  printf("\\n");
  fflush(stdout);
  return 0;
}
"""

# Tensors that say they are on a GPU. NVRTC is looked for where torch seems to be.
TENSORS = """
import torch
torch.__file__ = __file__.replace("program.py", "torch/__init__.py")
import programs
import tilepilot
from tilepilot import tilelang

class OnGpu(torch.Tensor):
    @property
    def device(self):
        return torch.device("cuda", getattr(self, "number", 0))

made = torch.empty

def empty(shape, dtype=None, device=None):
    on_cpu = made(shape, dtype=dtype)
    return on_cpu if device == "cpu" else on_cpu.as_subclass(OnGpu)

torch.empty = empty
stream = 77
torch._C._cuda_getCurrentRawStream = lambda number: stream + number
torch.cuda.is_available = lambda: True
torch.cuda.current_device = lambda: 0
torch.cuda.device_count = lambda: 1
torch.cuda.is_current_stream_capturing = lambda: False
x = torch.randn(16, 16)
on_gpu = x.clone().as_subclass(OnGpu)

def called(kernel, *arguments):
    try:
        result = kernel._native.run(*arguments)
        print(type(result).__name__, torch.equal(result.as_subclass(torch.Tensor), x * 2))
    except tilepilot.TilePilotError as error:
        print(type(error).__name__, str(error).splitlines()[0])
"""


def fake(folder, name, begin, end, *defines, replace=None, added=""):
    """A library of the source that fake_library.h has between two words."""
    text = FAKE_LIBRARY.read_text()
    source = "".join(re.findall(r'R"\((.*?)\)"', text[text.index(begin):text.index(end)], re.S))
    if replace:
        source = re.sub(*replace, source)
    (folder / f"{name}.cpp").write_text(source + added)
    subprocess.run(["c++", "-shared", "-fPIC", "-w", *defines, "-o", folder / name, folder / f"{name}.cpp"], check=True)


@pytest.fixture
def driver(python, tmp_path):
    """Runs a program with that driver, an NVRTC that makes nothing, and those tensors."""
    fake(tmp_path, "libcuda.so.1", "string fake_driver_source", "string fake_nvml_source", "-DVERSION=13000",
         "-DWAIT_STATUS=0", "-DCAPABILITY=90",
         replace=(r'extern "C" int (cuLaunchKernelEx.*\n|cuMemAlloc_v2[^}]*}\n)', ""), added=LAUNCH)
    fake(tmp_path, "libnvrtc.so.13", "string fake_nvrtc_source", "namespace tilepilot::testing\n",
         "-DSTATUS=0", replace=(r"^; return 0; }", "extern \"C\" int nvrtcVersion(int* major, int* minor) "
                                                  "{ *major = 13; *minor = 0; return 0; }"))

    def run(text):
        path = os.pathsep.join([str(pathlib.Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        done = python(TENSORS + text, LD_LIBRARY_PATH=str(tmp_path), PYTHONPATH=path,
                      TILEPILOT_CACHE=str(tmp_path / "cache"))
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()

    return run


@without_gpu
def test_launches_go_to_the_stream_and_memory_of_the_tensors(driver):
    lines = driver("""
kernel = programs.scaled(16, 16, 2)
called(kernel, on_gpu)
called(kernel, x)
print(kernel.device, kernel.target)
""")
    assert re.fullmatch(r"grid \d+ threads \d+ stream 77", lines[0]), lines
    assert lines[1:] == ["OnGpu True", "Tensor True", "cuda auto"]


@without_gpu
def test_streams_do_not_share_workspaces(driver):
    lines = driver("""
import os
import tilepilot.tilelang.language as T
os.environ["WORKSPACE"] = "1"

@T.prim_func
def through_workspace(A: T.Tensor((16, 16), "float32"), B: T.Tensor((16, 16), "float32")):
    between = T.alloc_global((16, 16), "float32")
    with T.Kernel(16, threads=16) as row:
        for j in T.Parallel(16):
            between[row, j] = A[row, j]
    with T.Kernel(16, threads=16) as row:
        for j in T.Parallel(16):
            B[row, j] = between[15 - row, j] * 2.0

kernel = tilelang.compile(through_workspace, out_idx=-1)
for stream in 77, 78, 77:
    kernel._native.run(on_gpu)
""")
    used = [tuple(map(int, re.findall(r"(?:stream|workspace) (\d+)", line))) for line in lines]
    assert [stream for stream, _ in used] == [77, 77, 78, 78, 77, 77]
    assert len({workspace for _, workspace in used}) == 2 and used[0] == used[1] == used[4], used


@without_gpu
def test_a_graph_cannot_capture_the_first_call(driver):
    lines = driver("""
captures = True
torch.cuda.is_current_stream_capturing = lambda: captures
kernel = programs.scaled(16, 16, 2)
called(kernel, on_gpu)
captures = False
called(kernel, on_gpu)
captures = True
called(kernel, on_gpu)
""")
    assert "KernelError `scale` is called for the first time while a CUDA graph is captured" in lines[0]
    assert [line.split()[0] for line in lines[1:]] == ["grid", "OnGpu", "grid", "OnGpu"], lines


def test_programs_verified_on_a_gpu_run_on_its_kind(monkeypatch):
    class OnGpu(torch.Tensor):
        device = torch.device("cuda", 0)

    certificate = {"verdict": {"target": "cuda:sm_90a"}, "reference": {"inputs": [{"dtype": "float32", "shape": [4]}]}}
    kinds = []
    for tensor, here in ((torch.ones(4).as_subclass(OnGpu), "cuda:sm_90a"), (torch.ones(4).as_subclass(OnGpu), "cuda:sm_80"),
                         (torch.ones(4), "cuda:sm_90a")):
        verification = Verification("fast.py", "", False, Evidence(("model.py", ""), json.dumps(certificate)))
        monkeypatch.setattr(verified_model, "target_of_gpu", lambda number: here)
        obstacle = verified_model._input_obstacle(verification, (tensor,), {})
        kinds.append(obstacle and obstacle.kind)
    assert kinds == [None, "target", "device"]


@without_gpu
def test_arguments_of_kernels_for_gpus_are_checked(driver):
    lines = driver("""
kernel = programs.scaled(16, 16, 2)
called(kernel, made(8, 16).as_subclass(OnGpu))
called(kernel, made(16, 16, dtype=torch.float64).as_subclass(OnGpu))
called(kernel, made(16, 32).as_subclass(OnGpu)[:, ::2])
called(tilelang.compile(programs.scaled.func(16, 16, 2), out_idx=-1, target="cpu"), on_gpu)
both = tilelang.compile(programs.scaled.func(16, 16, 2))
called(both, on_gpu, x)
other = x.clone().as_subclass(OnGpu)
other.number = 1
called(both, on_gpu, other)
called(both, on_gpu, on_gpu)
""")
    assert [line.split(" ", 1)[0] for line in lines] == 6 * ["ArgumentError"] + ["KernelError"], lines
    for line, part in zip(lines, [
            "`A` must have shape (16, 16), got (8, 16)", "`A` must have dtype `float32`, got `float64`",
            "`A` must be contiguous", "`A` is on `cuda:0`, and the kernel `scale` is compiled for the target `cpu`",
            "`B` is on `cpu`, and `A` on `cuda:0`", "`B` is on `cuda:1`, and `A` on `cuda:0`", "cuLaunchKernelEx"]):
        assert part in line


@without_gpu
def test_a_forked_process_cannot_go_on_with_the_gpu(driver):
    lines = driver("""
import os
kernel = programs.scaled(16, 16, 2)
called(kernel, on_gpu)
if os.fork() == 0:
    called(kernel, on_gpu)
    called(kernel, x)
    os._exit(0)
os.wait()
""")
    assert "this process was forked from one that used the GPU" in lines[2] and lines[3] == "Tensor True", lines


@without_gpu
def test_sizes_that_are_known_at_run_time(driver):
    lines = driver("""
kernel = programs.dynamic_scale()
result = kernel._native.run(made(32, 8).as_subclass(OnGpu), 2.0)
print(tuple(result.shape))
""")
    assert lines[-1] == "(32, 8)", lines
