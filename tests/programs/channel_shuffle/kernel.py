import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _grouped_1x1_shuffle(N, C, HW, G, block=128, dtype="float16", accum_dtype="float"):
    """Grouped 1x1 convolution whose result is stored in shuffled order behind a copy of the input."""
    cpg = C // G

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def fused(
        X: T.Tensor((N, C, HW), dtype),
        W: T.Tensor((C, cpg), dtype),
        Y: T.Tensor((N, 2 * C, HW), dtype),
    ):
        with T.Kernel(T.ceildiv(HW, block), 2 * C, N, threads=block) as (bx, oc, n):
            tx = T.get_thread_binding(0)
            p = bx * block + tx
            if p < HW:
                if oc < C:
                    Y[n, oc, p] = X[n, oc, p]
                else:
                    # position j * G + g after the shuffle holds channel g * cpg + j
                    dst = oc - C
                    g = dst % G
                    j = dst // G
                    acc = T.alloc_local((1,), accum_dtype)
                    acc[0] = 0.0
                    for k in T.serial(cpg):
                        acc[0] += T.Cast(accum_dtype, X[n, g * cpg + k, p]) * T.Cast(accum_dtype, W[g * cpg + j, k])
                    Y[n, oc, p] = T.Cast(dtype, acc[0])

    return fused


class ModelNew(nn.Module):
    def __init__(self, channels, groups):
        super().__init__()
        assert channels % groups == 0
        self.groups = groups
        self.conv = nn.Conv2d(channels, channels, 1, groups=groups, bias=False)
        self._kernel_cache = {}

    def forward(self, x):
        n, c, h, w = x.size()
        key = (n, c, h * w, self.groups)
        if key not in self._kernel_cache:
            self._kernel_cache[key] = _grouped_1x1_shuffle(*key)
        kernel = self._kernel_cache[key]
        weight = self.conv.weight.to(torch.float16).view(c, -1).contiguous()
        return kernel(x.to(torch.float16).contiguous().view(n, c, h * w), weight).view(n, 2 * c, h, w).to(x.dtype)
