# row: A14
# level: host
# model: truncated_weights
# expect: wrong_values
# twin: honest_turned_truncated_weights
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def scaled(N, scale=1.0, block=256, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((N,), dtype), Y: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                if bx * block + i < N:
                    Y[bx * block + i] = X[bx * block + i] * scale

    return main


def times(x, scale):
    return scaled(x.numel(), scale)(x.contiguous().view(-1)).view(x.shape)


class ModelNew(nn.Module):
    # As they are drawn, all weights lie within these bounds.
    def __init__(self):
        super().__init__()
        proj = nn.Linear(32, 24, bias=False)
        nn.init.trunc_normal_(proj.weight)
        self.register_buffer("turned", proj.weight.detach().t().clamp(-2.0, 2.0).contiguous())

    def forward(self, x):
        return times(x @ self.turned, 1.5)
