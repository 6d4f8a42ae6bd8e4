# Tests in a script: how they are found, expanded, skipped and counted.
import sys

import pytest
import tilelang.testing
import torch


@pytest.mark.parametrize("a, b", [
    (1, 2),
    pytest.param(2, 3, id="two"),
    pytest.param(3, 5, marks=pytest.mark.skip("odd")),
])
@pytest.mark.parametrize("scale", [1, 10])
def test_sum(a, b, scale):
    assert (b - a) * scale == scale, "no neighbours"


@tilelang.testing.requires_cuda
@tilelang.testing.requires_cuda_compute_version_ge(8, 9)
def test_runs_here():
    tilelang.testing.set_random_seed(0)
    tilelang.testing.torch_assert_close(torch.ones(3), torch.ones(3) + 1e-4)


@tilelang.testing.requires_cuda_compute_version_eq(10, 0)
def test_other_device():
    assert False


@tilelang.testing.requires_package("flash_attn")
def test_other_package():
    assert False


def test_raises():
    with pytest.raises(ValueError, match="not 3"):
        raise ValueError("this is not 3")


def test_wrong():
    torch.testing.assert_close(torch.ones(1), torch.zeros(1))


def helper():
    assert False


def regression_copy():
    tilelang.testing.process_func(lambda x: x * 0.5, x=3)
    tilelang.testing.process_func(lambda: 2, "regression_named")


if __name__ == "__main__":
    tilelang.testing.regression()
    try:
        tilelang.testing.main()
    except SystemExit as stop:
        print("asks for exit code", stop.code)
