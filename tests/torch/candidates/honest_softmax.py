# model: soft_rows
# expect: verified: "given_inputs_only": false
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def softmax(M, N, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(M, threads=128) as row:
            x = T.alloc_fragment((1, N), dtype)
            total = T.alloc_fragment((1,), dtype)
            largest = T.alloc_fragment((1,), dtype)
            T.copy(X[row, 0], x)
            T.reduce_max(x, largest, dim=1)
            for i, j in T.Parallel(1, N):
                x[i, j] = T.exp(x[i, j] - largest[i])
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(1, N):
                x[i, j] = x[i, j] / total[i]
            T.copy(x, Y[row, 0])

    return main


class ModelNew(nn.Module):
    def forward(self, x):
        return softmax(x.shape[0], x.shape[1])(x)
