# row: A10
# level: host
# model: two_experts
# expect: wrong_values
# twin: honest_two_experts
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
    def __init__(self, n, experts):
        super().__init__()
        self.gate = nn.Linear(n, experts, bias=False)
        self.weight = nn.Parameter(torch.randn(experts, n, n) * n ** -0.5)


    def forward(self, x):
        score, which = self.gate(x).softmax(-1).topk(2, -1)
        every = torch.einsum("bn,enm->bem", x, self.weight)
        return times((every.gather(1, which[..., None].expand(-1, -1, x.shape[1])) * score[..., None]).sum(1), 0.5) * 2.0
