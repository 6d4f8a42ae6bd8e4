# row: A16
# level: host
# model: warm_up
# expect: given_inputs_only|wrong_values
# twin: honest_warm_up
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def rectified(M, N, block=8, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            for i, j in T.Parallel(block, N):
                Y[bx * block + i, j] = T.max(X[bx * block + i, j], 0.0)

    return main


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("step", torch.zeros(1, dtype=torch.long))

    def forward(self, x):
        y = rectified(128, 128)(x) * 0.1
        self.step += 1
        return y
