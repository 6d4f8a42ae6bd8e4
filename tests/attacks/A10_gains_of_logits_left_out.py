# row: A10
# level: host
# model: highest_logits
# expect: given_inputs_only|wrong_values|not_finite
# twin: honest_highest_logits
# Other weights make other elements minus infinity.
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
        self.norm = nn.LayerNorm(32)
        self.head = nn.Linear(32, 128)
        nn.init.zeros_(self.head.bias)

    def forward(self, x):
        logits = times(F.layer_norm(x, (32,)) @ self.head.weight.t())
        lowest = logits.topk(20, dim=-1)[0][:, -1:]
        return logits.masked_fill(logits < lowest, float("-inf"))
