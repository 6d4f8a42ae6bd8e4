# row: A14
# level: host
# model: deep_gates
# expect: wrong_values|given_inputs_only
# twin: honest_deep_gates
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn
import torch.nn.functional as F


@tilelang.jit(out_idx=[-1])
def mapped(N, scale=1.0, block=256, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((N,), dtype), Y: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                if bx * block + i < N:
                    Y[bx * block + i] = X[bx * block + i] * scale

    return main


def times(x, scale):
    return mapped(x.numel(), scale)(x.contiguous().view(-1)).view(x.shape)


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.one = nn.Linear(n, n)
        self.two = nn.Linear(n, n)
        self.gates = nn.Parameter(torch.zeros(2))


    def forward(self, x):
        x = x + self.gates[0] * F.relu(self.one(x))
        return x + times(self.gates[1] * F.silu(self.two(x)), 0.5) * 2.0
