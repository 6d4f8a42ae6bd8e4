import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _build_bn_apply(B, C, HW, block_HW=128, dtype="float16", accum_dtype="float32"):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def bn_apply(
        X: T.Tensor((B, C, HW), dtype),
        scale: T.Tensor((C,), accum_dtype),
        shift: T.Tensor((C,), accum_dtype),
        Y: T.Tensor((B, C, HW), dtype),
    ):
        with T.Kernel(T.ceildiv(HW, block_HW), C, B, threads=128) as (bx, bc, bb):
            for i in T.Parallel(block_HW):
                p = bx * block_HW + i
                if p < HW:
                    Y[bb, bc, p] = T.Cast(dtype, T.Cast(accum_dtype, X[bb, bc, p]) * scale[bc] + shift[bc])

    return bn_apply


class ModelNew(nn.Module):
    """Statistics in PyTorch, normalisation and affine part in one kernel."""

    def __init__(self, num_features: int):
        super().__init__()
        self.num_features = num_features
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.register_buffer("num_batches_tracked", torch.tensor(0, dtype=torch.long))
        self.eps = 1e-5
        self.momentum = 0.1
        self._cache = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, C, H, W = x.shape
        x_f32 = x.to(torch.float32)
        if self.training:
            mean = x_f32.mean(dim=(0, 2, 3))
            var = x_f32.var(dim=(0, 2, 3), unbiased=False)
            with torch.no_grad():
                n = x.numel() / C
                self.running_mean.mul_(1 - self.momentum).add_(mean.to(self.running_mean.dtype) * self.momentum)
                self.running_var.mul_(1 - self.momentum).add_(
                    (var * n / (n - 1)).to(self.running_var.dtype) * self.momentum
                )
                self.num_batches_tracked.add_(1)
        else:
            mean, var = self.running_mean.float(), self.running_var.float()
        scale = self.weight.float() * torch.rsqrt(var + self.eps)
        shift = self.bias.float() - mean * scale
        key = (B, C, H * W)
        if key not in self._cache:
            self._cache[key] = _build_bn_apply(B, C, H * W)
        y = self._cache[key](x.to(torch.float16).contiguous().view(B, C, H * W), scale.contiguous(), shift.contiguous())
        return y.view(B, C, H, W).to(x.dtype)
