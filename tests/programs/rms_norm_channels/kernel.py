import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def rmsnorm_nchw(N, C, H, W, eps, block_size=128, dtype="float16"):
    num_pix = N * H * W

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def rmsnorm(X: T.Tensor((N, C, H, W), dtype), Y: T.Tensor((N, C, H, W), dtype)):
        with T.Kernel(T.ceildiv(num_pix, block_size), threads=block_size) as bx:
            tx = T.get_thread_binding(0)
            pix: T.int32 = bx * block_size + tx
            sq = T.alloc_local((1,), "float32")
            if pix < num_pix:
                n: T.int32 = pix // (H * W)
                rem: T.int32 = pix % (H * W)
                h: T.int32 = rem // W
                w: T.int32 = rem % W
                sq[0] = T.float32(0.0)
                for c in range(C):
                    sq[0] += X[n, c, h, w].astype("float32") * X[n, c, h, w].astype("float32")
                inv = T.rsqrt(sq[0] / T.float32(C) + T.float32(eps))
                for c in range(C):
                    Y[n, c, h, w] = (X[n, c, h, w].astype("float32") * inv).astype(dtype)

    return rmsnorm


class ModelNew(nn.Module):
    def __init__(self, num_features: int, eps: float = 1e-5):
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self._kernel_cache = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        xh = x.to(torch.float16).contiguous()
        key = (*xh.shape, self.eps)
        if key not in self._kernel_cache:
            self._kernel_cache[key] = rmsnorm_nchw(*xh.shape, self.eps)
        return self._kernel_cache[key](xh).to(x.dtype)
