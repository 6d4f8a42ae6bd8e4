import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _instance_norm(NC, HW, eps=1e-5, dtype="float16", accum_dtype="float"):
    inv_hw = 1.0 / HW

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def instance_norm(X: T.Tensor((NC, HW), dtype), Y: T.Tensor((NC, HW), dtype)):
        with T.Kernel(NC, threads=256) as bx:
            xs = T.alloc_shared((1, HW), dtype)
            xf = T.alloc_fragment((1, HW), accum_dtype)
            sqf = T.alloc_fragment((1, HW), accum_dtype)
            mean = T.alloc_fragment((1,), accum_dtype)
            var = T.alloc_fragment((1,), accum_dtype)

            T.copy(X[bx, 0], xs)
            for i, j in T.Parallel(1, HW):
                xf[i, j] = T.Cast(accum_dtype, xs[i, j])
            T.reduce_sum(xf, mean, dim=1)
            for i in T.Parallel(1):
                mean[i] = mean[i] * inv_hw
            for i, j in T.Parallel(1, HW):
                sqf[i, j] = (xf[i, j] - mean[i]) * (xf[i, j] - mean[i])
            T.reduce_sum(sqf, var, dim=1)
            for i in T.Parallel(1):
                var[i] = T.rsqrt(var[i] * inv_hw + eps)
            for i, j in T.Parallel(1, HW):
                Y[bx, j] = T.Cast(dtype, (xf[i, j] - mean[i]) * var[i])

    return instance_norm


class ModelNew(nn.Module):
    def __init__(self, num_features: int):
        super(ModelNew, self).__init__()
        self.num_features = num_features
        self.fn = None

    def forward(self, x):
        B, C, H, W = x.shape
        if self.fn is None:
            self.fn = _instance_norm(B * C, H * W)
        return self.fn(x.to(torch.float16).contiguous().view(B * C, H * W)).view(B, C, H, W).to(x.dtype)
