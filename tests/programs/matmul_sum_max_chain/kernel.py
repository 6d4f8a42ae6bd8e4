import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _build(M, N, K, pool, scale, threads=128, dtype="float16", accum_dtype="float"):
    out_features = N // pool

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def fused(
        X: T.Tensor((M, K), dtype),
        Wt: T.Tensor((K, N), dtype),
        B: T.Tensor((N,), dtype),
        Y: T.Tensor((M,), dtype),
    ):
        with T.Kernel(M, threads=threads) as m:
            tx = T.get_thread_binding(0)
            x_row = T.alloc_shared((K,), dtype)
            part = T.alloc_local((1,), accum_dtype)
            dot = T.alloc_local((1,), accum_dtype)
            best = T.alloc_local((1,), accum_dtype)
            total = T.alloc_local((1,), accum_dtype)
            for it in T.serial(T.ceildiv(K, threads)):
                if it * threads + tx < K:
                    x_row[it * threads + tx] = X[m, it * threads + tx]
            T.sync_threads()
            part[0] = 0.0
            for it in T.serial(T.ceildiv(out_features, threads)):
                f = it * threads + tx
                if f < out_features:
                    best[0] = T.min_value(accum_dtype)
                    for p in T.serial(pool):
                        dot[0] = T.Cast(accum_dtype, B[f * pool + p])
                        for k in T.serial(K):
                            dot[0] += T.Cast(accum_dtype, x_row[k]) * T.Cast(accum_dtype, Wt[k, f * pool + p])
                        best[0] = T.max(best[0], dot[0])
                    part[0] += best[0]
            with T.attr(
                T.comm_reducer(lambda x, y: x + y, [T.Cast(accum_dtype, 0)]),
                "reduce_scope",
                T.reinterpret(T.uint64(0), dtype="handle"),
            ):
                T.evaluate(T.tvm_thread_allreduce(T.uint32(1), part[0], True, total[0], tx, dtype="handle"))
            if tx == 0:
                Y[m] = T.Cast(dtype, total[0] * scale)

    return fused


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, kernel_size, scale_factor):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.kernel_size = kernel_size
        self.scale_factor = scale_factor
        self._cache = {}

    def forward(self, x):
        M, K = x.shape
        N = self.matmul.out_features
        if M not in self._cache:
            self._cache[M] = _build(M, N, K, self.kernel_size, self.scale_factor)
        w_t = self.matmul.weight.t().to(torch.float16).contiguous()
        return self._cache[M](x.to(torch.float16).contiguous(), w_t, self.matmul.bias.to(torch.float16)).to(x.dtype)
