# row: A7
# level: tile
# model: running_sums
# expect: wrong_values
# twin: honest_running_sums
import tilelang
import tilelang.language as T
import torch.nn as nn


# Nothing says that the block above has written its sums.
@tilelang.jit(out_idx=[-1])
def running_sums(M, N, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(M, threads=128) as bx:
            for j in T.Parallel(N):
                if bx == 0:
                    Y[bx, j] = X[bx, j]
                else:
                    Y[bx, j] = Y[bx - 1, j] + X[bx, j]

    return main


class ModelNew(nn.Module):
    def forward(self, x):
        return running_sums(*x.shape)(x)
