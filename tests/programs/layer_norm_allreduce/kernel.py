import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def build_layer_norm(rows, N, eps, num_threads=128, dtype="float16", accum_dtype="float"):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def layer_norm(
        X: T.Tensor((rows, N), dtype),
        gamma: T.Tensor((N,), dtype),
        beta: T.Tensor((N,), dtype),
        Y: T.Tensor((rows, N), dtype),
    ):
        with T.Kernel(rows, threads=num_threads) as bx:
            t = T.get_thread_binding(0)
            psum = T.alloc_local((1,), accum_dtype)
            psq = T.alloc_local((1,), accum_dtype)
            tsum = T.alloc_local((1,), accum_dtype)
            tsq = T.alloc_local((1,), accum_dtype)
            psum[0] = 0.0
            psq[0] = 0.0
            for k in T.serial(T.ceildiv(N, num_threads)):
                i = k * num_threads + t
                if i < N:
                    v = T.Cast(accum_dtype, X[bx, i])
                    psum[0] += v
                    psq[0] += v * v

            with T.attr(
                T.comm_reducer(lambda a, b: a + b, [T.Cast(accum_dtype, 0)]),
                "reduce_scope",
                T.reinterpret(T.uint64(0), dtype="handle"),
            ):
                T.evaluate(T.tvm_thread_allreduce(T.uint32(1), psum[0], True, tsum[0], t, dtype="handle"))
            with T.attr(
                T.comm_reducer(lambda a, b: a + b, [T.Cast(accum_dtype, 0)]),
                "reduce_scope",
                T.reinterpret(T.uint64(0), dtype="handle"),
            ):
                T.evaluate(T.tvm_thread_allreduce(T.uint32(1), psq[0], True, tsq[0], t, dtype="handle"))

            mean = tsum[0] / N
            var = tsq[0] / N - mean * mean
            rstd = T.rsqrt(var + eps)
            for k in T.serial(T.ceildiv(N, num_threads)):
                i = k * num_threads + t
                if i < N:
                    x_hat = (T.Cast(accum_dtype, X[bx, i]) - mean) * rstd
                    Y[bx, i] = T.Cast(
                        dtype, x_hat * T.Cast(accum_dtype, gamma[i]) + T.Cast(accum_dtype, beta[i])
                    )

    return layer_norm


class ModelNew(nn.Module):
    def __init__(self, normalized_shape):
        super().__init__()
        if isinstance(normalized_shape, int):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.weight = nn.Parameter(torch.ones(self.normalized_shape))
        self.bias = nn.Parameter(torch.zeros(self.normalized_shape))
        self.eps = 1e-5
        self._cache = {}

    def forward(self, x):
        N = 1
        for s in self.normalized_shape:
            N *= s
        flat = x.to(torch.float16).contiguous().view(-1, N)
        rows = flat.shape[0]
        if (rows, N) not in self._cache:
            self._cache[(rows, N)] = build_layer_norm(rows, N, self.eps)
        y = self._cache[(rows, N)](
            flat,
            self.weight.to(torch.float16).contiguous().view(-1),
            self.bias.to(torch.float16).contiguous().view(-1),
        )
        return y.view(x.shape).to(x.dtype)
