# `tilelang.engine.param`: what a kernel's parameter is, for those who make inputs.
from dataclasses import dataclass

import torch

# Element types that LibTorch has under another name, or keeps in another type.
IN_TORCH = {
    "tfloat32": "float32",
    "float8_e4m3": "float8_e4m3fn",
    "int4": "int8",
    "float4_e2m1fn": "int8",
}


@dataclass
class KernelParam:
    """An extent of `shape` is an integer, or the text of the symbols in it; a scalar has none."""
    dtype: object
    shape: list

    def is_scalar(self):
        return len(self.shape) == 0

    def is_unsigned(self):
        return str(self.dtype).startswith("uint")

    def is_float8(self):
        return str(self.dtype).startswith("float8")

    def is_float4(self):
        return str(self.dtype).startswith("float4")

    def is_boolean(self):
        return str(self.dtype).startswith("bool")

    def torch_dtype(self):
        name = str(self.dtype)
        return getattr(torch, IN_TORCH.get(name, name))

    def tilelang_dtype(self):
        return self.dtype
