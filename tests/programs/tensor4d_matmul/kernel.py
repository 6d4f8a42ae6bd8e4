import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def einsum_kernel(R, L, K, block_R=16, block_K=32, dtype="float16", accum_dtype="float"):
    # one thread per output element of the (block_R, block_K) patch
    threads = block_R * block_K

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def kernel(X: T.Tensor((R, L), dtype), W: T.Tensor((L, K), dtype), Y: T.Tensor((R, K), dtype)):
        with T.Kernel(T.ceildiv(K, block_K), T.ceildiv(R, block_R), threads=threads) as (bx, by):
            tid = T.get_thread_binding()
            local_r = tid // block_K
            local_k = tid % block_K
            r = by * block_R + local_r
            c = bx * block_K + local_k
            acc = T.alloc_local([1], accum_dtype)
            acc[0] = 0
            if (r < R) and (c < K):
                for t in range(L):
                    acc[0] = acc[0] + T.cast(X[r, t], accum_dtype) * T.cast(W[t, c], accum_dtype)
                Y[r, c] = T.cast(acc[0], dtype)

    return kernel


class ModelNew(nn.Module):
    def __init__(self):
        super(ModelNew, self).__init__()
        self.kernel_map = dict()

    def forward(self, A, B):
        *lead, L = A.shape
        K = B.shape[-1]
        flat = A.to(torch.float16).contiguous().view(-1, L)
        R = flat.shape[0]
        if (R, L, K) not in self.kernel_map:
            self.kernel_map[(R, L, K)] = einsum_kernel(R, L, K)
        out = self.kernel_map[(R, L, K)](flat, B.to(torch.float16).contiguous())
        return out.view(*lead, K).to(A.dtype)
