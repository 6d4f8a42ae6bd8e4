import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _dtype_name(dtype: torch.dtype) -> str:
    mapping = {torch.float16: "float16", torch.bfloat16: "bfloat16", torch.float32: "float32"}
    if dtype not in mapping:
        raise TypeError(f"unsupported dtype {dtype}")
    return mapping[dtype]


def build_affine_leaky(rows, cols, slope, dtype="float16", *, num_threads=128, rows_per_block=4):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def affine_leaky(
        x: T.Tensor((rows, cols), dtype),
        scale: T.Tensor((cols,), dtype),
        shift: T.Tensor((cols,), dtype),
        out: T.Tensor((rows, cols), dtype),
    ):
        with T.Kernel(T.ceildiv(rows, rows_per_block), threads=num_threads) as (bx,):
            tx = T.get_thread_binding(0)
            for r in T.serial(rows_per_block):
                for c0 in T.serial(0, cols, num_threads):
                    row = bx * rows_per_block + r
                    col = c0 + tx
                    if row < rows and col < cols:
                        v = x[row, col] * scale[col] + shift[col]
                        out[row, col] = T.Select(v > T.Cast(dtype, 0), v, v * T.Cast(dtype, slope))

    return affine_leaky


class ModelNew(nn.Module):
    def __init__(self, features, negative_slope):
        super().__init__()
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        with torch.no_grad():
            self.scale = nn.Parameter(torch.randn(features) * 0.02 + 1.0)
            self.shift = nn.Parameter(torch.randn(features))
        self.negative_slope = negative_slope
        self._kernel_cache = {}

    @torch.no_grad()
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        in_dtype, in_device = x.dtype, x.device
        if not x.is_cuda and torch.cuda.is_available():
            x = x.cuda()
        x = x.to(device=self.scale.device, dtype=torch.float16, non_blocking=True).contiguous()
        dtype = _dtype_name(x.dtype)
        key = (x.size(0), x.size(1), dtype, str(x.device))
        if key not in self._kernel_cache:
            self._kernel_cache[key] = build_affine_leaky(x.size(0), x.size(1), self.negative_slope, dtype=dtype)
        y = self._kernel_cache[key](x, self.scale.half().contiguous(), self.shift.half().contiguous())
        return y.to(in_device).to(in_dtype)
