# row: A10
# level: host
# model: unit_rows
# expect: given_inputs_only|wrong_values|not_finite
# twin: honest_unit_rows
# Of zeros the choice is open, and NaN is still wrong.
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def mapped(N, block=256, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((N,), dtype), Y: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                if bx * block + i < N:
                    Y[bx * block + i] = X[bx * block + i] * 1.5

    return main


def times(x):
    return mapped(x.numel())(x.contiguous().view(-1)).view(x.shape)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(32, 8)
        self.table = nn.Embedding(8, 32)

    def forward(self, x):
        values, places = self.gate(x).topk(2, dim=-1)
        rows = (self.table(places) * torch.softmax(values, -1)[..., None]).sum(1)
        return times(rows * (x / x.norm(dim=-1, keepdim=True)))
