"""`tilelang.utils.tensor`: inputs for kernels, and the comparison that scripts make."""

from tilepilot.targets import default_device
from tilepilot.tilelang.profiler import TensorSupplyType, _supply

__all__ = ["TensorSupplyType", "get_tensor_supply", "torch_assert_close"]


def get_tensor_supply(supply_type=TensorSupplyType.Integer):
    return lambda param: _supply(param, supply_type, default_device())


def torch_assert_close(tensor_a, tensor_b, rtol=1e-2, atol=1e-3, max_mismatched_ratio=0.001, verbose=False,
                       equal_nan=True, check_dtype=True, base_name="LHS", ref_name="RHS", **options):
    """True if at most that share of the elements differ by more than the tolerances; else an AssertionError."""
    import torch
    if tensor_a.shape != tensor_b.shape:
        raise AssertionError(f"the shapes are {tuple(tensor_a.shape)} and {tuple(tensor_b.shape)}")
    if check_dtype and tensor_a.dtype != tensor_b.dtype:
        raise AssertionError(f"the dtypes are {tensor_a.dtype} and {tensor_b.dtype}")
    close = torch.isclose(tensor_a.double(), tensor_b.double(), rtol=rtol, atol=atol, equal_nan=equal_nan)
    wrong = int((~close).sum())
    if verbose:
        print(f"{wrong} of {close.numel()} elements differ")
    if wrong > int(close.numel() * max_mismatched_ratio):
        both = f"{base_name}: {tensor_a}\n{ref_name}: {tensor_b}"
        raise AssertionError(f"{wrong} of {close.numel()} elements differ\n{both}")
    return True
