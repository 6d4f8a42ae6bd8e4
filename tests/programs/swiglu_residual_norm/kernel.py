import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


class KernelZoo:
    """Builds kernels on demand and keeps them."""

    def __init__(self, dtype="float16", accum="float"):
        self.dtype = dtype
        self.accum = accum
        self.store = {}

    def get(self, kind, *args):
        key = (kind,) + args
        if key not in self.store:
            self.store[key] = getattr(self, "_" + kind)(*args)
        return self.store[key]

    def _rmsnorm(self, M, N, eps):
        dtype, accum = self.dtype, self.accum

        @tilelang.jit(out_idx=-1)
        @T.prim_func
        def rmsnorm(X: T.Tensor((M, N), dtype), G: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
            with T.Kernel(M, threads=N) as bx:
                tx = T.get_thread_binding(0)
                buf = T.alloc_shared((N,), accum)
                ms = T.alloc_local((1,), accum)
                buf[tx] = T.Cast(accum, X[bx, tx]) * T.Cast(accum, X[bx, tx])
                T.sync_threads()
                ms[0] = 0.0
                for i in T.serial(N):
                    ms[0] += buf[i]
                Y[bx, tx] = T.Cast(
                    dtype, T.Cast(accum, X[bx, tx]) * T.rsqrt(ms[0] / N + eps) * T.Cast(accum, G[tx])
                )

        return rmsnorm

    def _gated(self, M, H, D):
        dtype, accum = self.dtype, self.accum
        block_M, block_N, block_K = 32, 32, 32

        @tilelang.jit(out_idx=-1)
        @T.prim_func
        def gated(
            X: T.Tensor((M, D), dtype),
            W1: T.Tensor((H, D), dtype),
            W3: T.Tensor((H, D), dtype),
            Y: T.Tensor((M, H), dtype),
        ):
            with T.Kernel(T.ceildiv(H, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
                Xs = T.alloc_shared((block_M, block_K), dtype)
                W1s = T.alloc_shared((block_N, block_K), dtype)
                W3s = T.alloc_shared((block_N, block_K), dtype)
                gate = T.alloc_fragment((block_M, block_N), accum)
                up = T.alloc_fragment((block_M, block_N), accum)
                T.clear(gate)
                T.clear(up)
                for k in T.Pipelined(T.ceildiv(D, block_K), num_stages=2):
                    T.copy(X[by * block_M, k * block_K], Xs)
                    T.copy(W1[bx * block_N, k * block_K], W1s)
                    T.copy(W3[bx * block_N, k * block_K], W3s)
                    T.gemm(Xs, W1s, gate, transpose_B=True)
                    T.gemm(Xs, W3s, up, transpose_B=True)
                for i, j in T.Parallel(block_M, block_N):
                    gate[i, j] = gate[i, j] / (1.0 + T.exp(-gate[i, j])) * up[i, j]
                T.copy(gate, Y[by * block_M, bx * block_N])

        return gated

    def _down(self, M, D, H):
        dtype, accum = self.dtype, self.accum
        block_M, block_N, block_K = 32, 32, 32

        @tilelang.jit(out_idx=-1)
        @T.prim_func
        def down(
            A: T.Tensor((M, H), dtype),
            W2: T.Tensor((D, H), dtype),
            R: T.Tensor((M, D), dtype),
            Y: T.Tensor((M, D), dtype),
        ):
            with T.Kernel(T.ceildiv(D, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
                As = T.alloc_shared((block_M, block_K), dtype)
                Ws = T.alloc_shared((block_N, block_K), dtype)
                acc = T.alloc_fragment((block_M, block_N), accum)
                T.copy(R[by * block_M, bx * block_N], acc)
                for k in T.Pipelined(T.ceildiv(H, block_K), num_stages=2):
                    T.copy(A[by * block_M, k * block_K], As)
                    T.copy(W2[bx * block_N, k * block_K], Ws)
                    T.gemm(As, Ws, acc, transpose_B=True)
                T.copy(acc, Y[by * block_M, bx * block_N])

        return down


class ModelNew(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.norm_weight = nn.Parameter(torch.ones(dim))
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.zoo = KernelZoo()

    def forward(self, x):
        shape = x.shape
        D = shape[-1]
        H = self.w1.out_features
        x2 = x.to(torch.float16).contiguous().view(-1, D)
        M = x2.size(0)
        w1, w3, w2 = (w.weight.to(torch.float16).contiguous() for w in (self.w1, self.w3, self.w2))
        y = self.zoo.get("rmsnorm", M, D, 1e-6)(x2, self.norm_weight.to(torch.float16))
        y = self.zoo.get("gated", M, H, D)(y, w1, w3)
        y = self.zoo.get("down", M, D, H)(y, w2, x2)
        return y.view(shape).to(x.dtype)
