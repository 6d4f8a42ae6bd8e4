# `tilelang.utils.tensor` for scripts: inputs for kernels, and a comparison that forgives a share of the elements.
from enum import Enum

import _tilepilot_device as gpu
import torch

FLOAT8_DTYPES = tuple(getattr(torch, name) for name in ("float8_e4m3fn", "float8_e5m2"))
UNSIGNED_DTYPES = tuple(getattr(torch, name) for name in ("uint16", "uint32", "uint64"))
# Keeps relative differences finite where the reference is zero.
TINY = 1e-12


def is_float8_dtype(dtype):
    return dtype in FLOAT8_DTYPES


class TensorSupplyType(Enum):
    Integer = 1
    Uniform = 2
    Normal = 3
    Randn = 4
    Zero = 5
    One = 6
    Auto = 7


def concrete_shape(param):
    if not param.shape:
        raise ValueError("a scalar parameter has no tensor to supply: give the inputs yourself")
    for extent in param.shape:
        if not isinstance(extent, int):
            raise ValueError(f"the extent `{extent}` is dynamic: give the inputs yourself, or its value in "
                             "dynamic_symbolic_constraints")
    return list(param.shape)


def small_integers(param, shape, dtype):
    if param.is_unsigned():
        return torch.randint(0, 3, shape, dtype=dtype, device=gpu.torch_device)
    if param.is_float8():
        return torch.randint(-128, 128, shape, dtype=torch.int8, device=gpu.torch_device).to(dtype)
    if param.is_float4():
        return torch.randint(0, 16, shape, dtype=dtype, device=gpu.torch_device)
    if param.is_boolean():
        return torch.randint(0, 2, shape, dtype=dtype, device=gpu.torch_device)
    return torch.randint(-2, 3, shape, dtype=dtype, device=gpu.torch_device)


def automatic(param, shape, dtype):
    if dtype in (torch.float16, torch.float32, torch.bfloat16):
        return torch.empty(shape, dtype=dtype, device=gpu.torch_device).uniform_(-1.0, 1.0)
    return small_integers(param, shape, dtype)


# How each kind is made. Normal is around -1, as the language has it.
SUPPLIES = {
    TensorSupplyType.Integer: small_integers,
    TensorSupplyType.Auto: automatic,
    TensorSupplyType.Uniform: lambda param, shape, dtype: torch.empty(shape, device=gpu.torch_device).uniform_(-1.0, 1.0).to(dtype),
    TensorSupplyType.Normal: lambda param, shape, dtype: torch.empty(shape, device=gpu.torch_device).normal_(-1.0, 1.0).to(dtype),
    TensorSupplyType.Randn: lambda param, shape, dtype: torch.randn(shape, device=gpu.torch_device).to(dtype),
    TensorSupplyType.Zero: lambda param, shape, dtype: torch.zeros(shape, dtype=dtype, device=gpu.torch_device),
    TensorSupplyType.One: lambda param, shape, dtype: torch.ones(shape, dtype=dtype, device=gpu.torch_device),
}


def get_tensor_supply(supply_type=TensorSupplyType.Integer):
    """A function that makes a tensor for a KernelParam."""
    if supply_type not in SUPPLIES:
        raise NotImplementedError(supply_type)

    def supply(param):
        shape, dtype = concrete_shape(param), param.torch_dtype()
        if dtype == torch.int8 and supply_type in (TensorSupplyType.Uniform, TensorSupplyType.Normal):
            return torch.ones(shape, dtype=dtype, device=gpu.torch_device)
        return SUPPLIES[supply_type](param, shape, dtype)

    return supply


def check_attributes(actual, expected, checks):
    names = ("shape", "layout", "stride()", "device", "dtype")
    for name, wanted in zip(names, checks, strict=True):
        first, second = (tensor.stride() if name == "stride()" else getattr(tensor, name)
                         for tensor in (actual, expected))
        if wanted and first != second:
            raise AssertionError(f"The values for attribute '{name}' do not match: {first} != {second}.")


def comparable(actual, expected):
    tensors = [tensor.detach() for tensor in (actual, expected)]
    if actual.dtype == expected.dtype and actual.dtype not in UNSIGNED_DTYPES:
        return tensors
    dtype = torch.promote_types(*(torch.int64 if tensor.dtype in UNSIGNED_DTYPES else tensor.dtype
                                  for tensor in tensors))
    return [tensor.to(dtype) for tensor in tensors]


def index_of(flat, shape):
    index = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return list(reversed(index))


def first_mismatch(actual, expected, mismatched):
    flat = int(torch.argmax(mismatched.reshape(-1).int()))
    left, right = actual.reshape(-1)[flat].item(), expected.reshape(-1)[flat].item()
    difference = abs(left - right)
    return (f"First mismatch at index {index_of(flat, actual.shape)}: lhs={left:.6f}, rhs={right:.6f}, "
            f"abs_diff={difference:.6f}, rel_diff={difference / (abs(right) + TINY):.6f}")


def torch_assert_close(tensor_a, tensor_b, rtol=1e-2, atol=1e-3, max_mismatched_ratio=0.001, verbose=False,
                       equal_nan=True, check_device=True, check_dtype=True, check_layout=True, check_stride=False,
                       base_name="LHS", ref_name="RHS"):
    """True if at most that share of the elements differ by more than the tolerances; else an AssertionError."""
    check_attributes(tensor_a, tensor_b, (True, check_layout, check_stride, check_device, check_dtype))
    actual, expected = comparable(tensor_a, tensor_b)
    mismatched = ~torch.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan)
    wrong, total = int(mismatched.sum()), actual.numel()
    allowed = int(total * max_mismatched_ratio)
    if verbose:
        print(f"Number of mismatched elements: {wrong} / {total} (allowed: {allowed})")
    if wrong <= allowed:
        return True
    difference = (actual - expected).abs()
    raise AssertionError(
        f"Too many mismatched elements: {wrong} > {allowed} ({max_mismatched_ratio * 100:.2f}% allowed, but get "
        f"{wrong / total * 100:.2f}%).\n{first_mismatch(actual, expected, mismatched)}\n"
        f"Greatest absolute difference: {difference.max().item()}, "
        f"Greatest relative difference: {(difference / (expected.abs() + TINY)).max().item()}\n"
        f"{base_name}: {actual}\n{ref_name}: {expected}")
