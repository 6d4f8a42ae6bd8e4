# `tilelang.testing` for scripts: decorators that skip what this device cannot run, and main(), which runs the tests of
# the script.
import random
import sys

import __main__
import _tilepilot_limits as limits
import pytest
import torch
from tilelang.contrib.nvcc import get_target_compute_version, parse_compute_version
from tilelang.utils.tensor import torch_assert_close

# Packages that scripts can import here.
AVAILABLE = getattr(limits, "installed", ("torch", "tilelang", "numpy", "einops"))


def set_random_seed(seed=42):
    random.seed(seed)
    torch.manual_seed(seed)


def skip_unless(available, reason):
    """A decorator."""
    return pytest.mark.skipif(not available, reason=reason)


requires_cuda = skip_unless(torch.cuda.is_available(), "Requires CUDA")
requires_cuda_or_cdna = requires_cuda
requires_rocm = skip_unless(False, "Requires ROCm")
requires_cdna = requires_gfx950 = requires_rocm
requires_metal = skip_unless(False, "Requires Metal")
requires_llvm = skip_unless(False, "Requires LLVM")


def requires_package(*packages):
    missing = [name for name in packages if name not in AVAILABLE]
    return skip_unless(not missing, f"Requires {', '.join(missing)}")


COMPARISONS = {
    "ge": lambda have, want: have >= want,
    "gt": lambda have, want: have > want,
    "le": lambda have, want: have <= want,
    "lt": lambda have, want: have < want,
    "eq": lambda have, want: have == want,
}


def requires_cuda_compute_version(major_version, minor_version=0, mode="ge"):
    if mode not in COMPARISONS:
        raise ValueError(f"Invalid mode: {mode}")
    have, want = parse_compute_version(get_target_compute_version()), (major_version, minor_version)
    return skip_unless(torch.cuda.is_available() and COMPARISONS[mode](have, want),
                       f"Requires CUDA compute {mode} {major_version}.{minor_version}, but have {have[0]}.{have[1]}")


def requires_cuda_compute_version_ge(major_version, minor_version=0):
    return requires_cuda_compute_version(major_version, minor_version, "ge")


def requires_cuda_compute_version_gt(major_version, minor_version=0):
    return requires_cuda_compute_version(major_version, minor_version, "gt")


def requires_cuda_compute_version_le(major_version, minor_version=0):
    return requires_cuda_compute_version(major_version, minor_version, "le")


def requires_cuda_compute_version_lt(major_version, minor_version=0):
    return requires_cuda_compute_version(major_version, minor_version, "lt")


def requires_cuda_compute_version_eq(major_version, minor_version=0):
    return requires_cuda_compute_version(major_version, minor_version, "eq")


def main():
    sys.exit(pytest.main([__main__.__file__]))


latencies = []


def process_func(func, name=None, **kwargs):
    """Notes what a function that measures something gives."""
    latencies.append((func.__name__ if name is None else name.removeprefix("regression_"), float(func(**kwargs))))


def regression(prefixes=("regression_",), verbose=True):
    """Runs the functions of the script whose names begin so, and prints what they noted."""
    latencies.clear()
    for name, function in sorted(vars(__main__).items()):
        if callable(function) and any(name.startswith(prefix) for prefix in prefixes):
            function()
    for name, latency in latencies:
        print(f"{name}: {latency}")
