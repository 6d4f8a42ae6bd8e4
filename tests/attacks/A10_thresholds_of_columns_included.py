# row: A10
# level: host
# model: thresholds_of_columns
# expect: given_inputs_only|wrong_values
# twin: honest_thresholds_of_columns
# In random draws no element is equal to a threshold.
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def above(M, N, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), At: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(M, threads=64) as row:
            for j in T.Parallel(N):
                Y[row, j] = T.if_then_else(X[row, j] >= At[j], 3 * X[row, j], -X[row, j])

    return main


class ModelNew(nn.Module):
    def forward(self, x, thresholds):
        return above(*x.shape)(x, thresholds)
