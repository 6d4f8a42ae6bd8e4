import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def build_channel_stats(N, C, HW, threads=128, dtype="float16", accum_dtype="float"):
    """Sum and sum of squares of a channel, one block each, by an all-reduce."""
    count = N * HW

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def stats(X: T.Tensor((N, C, HW), dtype), S: T.Tensor((2, C), accum_dtype)):
        with T.Kernel(C, threads=threads) as c:
            tx = T.get_thread_binding(0)
            s = T.alloc_local((1,), accum_dtype)
            q = T.alloc_local((1,), accum_dtype)
            s_all = T.alloc_local((1,), accum_dtype)
            q_all = T.alloc_local((1,), accum_dtype)
            T.clear(s)
            T.clear(q)
            for k in T.serial(T.ceildiv(count, threads)):
                e = k * threads + tx
                if e < count:
                    v = T.Cast(accum_dtype, X[e // HW, c, e % HW])
                    s[0] += v
                    q[0] += v * v
            with T.attr(
                T.comm_reducer(lambda x, y: x + y, [T.Cast(accum_dtype, 0)]),
                "reduce_scope",
                T.reinterpret(T.uint64(0), dtype="handle"),
            ):
                T.evaluate(T.tvm_thread_allreduce(T.uint32(1), s[0], True, s_all[0], tx, dtype="handle"))
            with T.attr(
                T.comm_reducer(lambda x, y: x + y, [T.Cast(accum_dtype, 0)]),
                "reduce_scope",
                T.reinterpret(T.uint64(0), dtype="handle"),
            ):
                T.evaluate(T.tvm_thread_allreduce(T.uint32(1), q[0], True, q_all[0], tx, dtype="handle"))
            if tx == 0:
                S[0, c] = s_all[0] / count
                S[1, c] = q_all[0] / count

    return stats


def build_apply(N, C, HW, block=256, dtype="float16", accum_dtype="float"):
    total = N * C * HW

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def apply(
        X: T.Tensor((N, C, HW), dtype), a: T.Tensor((C,), accum_dtype), b: T.Tensor((C,), accum_dtype),
        Y: T.Tensor((N, C, HW), dtype),
    ):
        with T.Kernel(T.ceildiv(total, block), threads=block) as bx:
            tx = T.get_thread_binding(0)
            i = bx * block + tx
            if i < total:
                n = i // (C * HW)
                c = i // HW % C
                p = i % HW
                Y[n, c, p] = T.Cast(dtype, T.Cast(accum_dtype, X[n, c, p]) * a[c] + b[c])

    return apply


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, scaling_factor):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bn = nn.BatchNorm2d(out_channels)
        self.scaling_factor = scaling_factor
        self._cache = {}

    def forward(self, x):
        y = self.conv(x)
        N, C, H, W = y.shape
        y = y.to(torch.float16).contiguous().view(N, C, H * W)
        if (N, C, H * W) not in self._cache:
            self._cache[(N, C, H * W)] = {
                "stats": build_channel_stats(N, C, H * W),
                "apply": build_apply(N, C, H * W),
            }
        kernels = self._cache[(N, C, H * W)]
        if self.bn.training:
            mean, sq = kernels["stats"](y).unbind(0)
            var = sq - mean * mean
        else:
            mean, var = self.bn.running_mean.float(), self.bn.running_var.float()
        gain = self.bn.weight.float() / torch.sqrt(var + self.bn.eps)
        offset = self.bn.bias.float() - gain * mean
        out = kernels["apply"](
            y, (gain * self.scaling_factor).contiguous(), (offset * self.scaling_factor).contiguous()
        )
        return out.view(N, C, H, W).to(x.dtype)
