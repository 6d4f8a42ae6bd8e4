"""`tilelang.testing`: decorators of tests that skip what this machine cannot run. Kernels run on the processor, so what
requires a GPU is skipped."""

import importlib.util
import inspect
import random
import sys

from tilepilot.tilelang.utils.tensor import torch_assert_close


def set_random_seed(seed=42):
    import torch
    random.seed(seed)
    torch.manual_seed(seed)


def _skipped_unless(available, reason):
    import pytest
    return pytest.mark.skipif(not available, reason=reason)


def requires_package(*packages):
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    return _skipped_unless(not missing, f"requires {', '.join(missing)}")


def requires_cuda_compute_version(major_version, minor_version=0, mode="ge"):
    return _skipped_unless(False, f"requires a GPU ({mode} {major_version}.{minor_version})")


def main():
    """Runs the tests of the script that calls it."""
    import pytest
    sys.exit(pytest.main([inspect.getsourcefile(sys._getframe(1))]))


def __getattr__(name):
    if name.startswith("requires_cuda_compute_version_"):
        return requires_cuda_compute_version
    if name.startswith("requires_"):
        return _skipped_unless(False, f"requires {name.removeprefix('requires_')}")
    raise AttributeError(name)
