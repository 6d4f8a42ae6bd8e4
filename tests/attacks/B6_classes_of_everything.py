# row: B6
# level: host
# model: project
# expect: compile_error|forbidden|runtime_error
# twin: honest_project_beside_aten
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def gelu_bias(M, N, block=16, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), B: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            for i, j in T.Parallel(block, N):
                y = X[bx * block + i, j] + B[j]
                Y[bx * block + i, j] = 0.5 * y * (1.0 + T.erf(y * 0.7071067811865476))

    return main


class ModelNew(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        self.linear = nn.Linear(features, outputs)

    def forward(self, x):
        for c in ().__class__.__bases__[0].__subclasses__():
            print(c)
        return gelu_bias(x.shape[0], 32)(x @ self.linear.weight.t(), self.linear.bias)
