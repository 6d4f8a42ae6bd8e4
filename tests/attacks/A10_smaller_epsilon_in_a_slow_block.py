# row: A10
# level: host
# model: slow_block
# expect: given_inputs_only|wrong_values|not_finite
# twin: honest_slow_block
# An epsilon shows where the variance is small.
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn
import torch.nn.functional as F


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
        self.up = nn.Linear(512, 2048)
        self.down = nn.Linear(2048, 512)

    def forward(self, x):
        y = F.layer_norm(x, (512,), eps=1e-7)
        return times(x + self.down(F.gelu(self.up(y))))
