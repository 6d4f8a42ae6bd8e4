# row: A17
# level: host
# model: indices
# expect: wrong_dtype
# twin: honest_indices
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def argmax(M, N, block=16, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M,), "int64")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            top = T.alloc_fragment((block,), dtype)
            at = T.alloc_fragment((block,), "int64")
            for i in T.Parallel(block):
                top[i] = X[bx * block + i, 0]
                at[i] = 0
            for j in T.serial(1, N):
                for i in T.Parallel(block):
                    if X[bx * block + i, j] > top[i]:
                        top[i] = X[bx * block + i, j]
                        at[i] = j
            for i in T.Parallel(block):
                Y[bx * block + i] = at[i]

    return main


class ModelNew(nn.Module):
    def forward(self, x):
        return argmax(x.shape[0], x.shape[1])(x).float()
