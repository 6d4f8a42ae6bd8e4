# level: host
# model: softmax_projection
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn
import torch.nn.functional as F


@tilelang.jit(out_idx=[-1])
def largest(M, N, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, 1), dtype)):
        with T.Kernel(M, threads=32) as bx:
            row = T.alloc_fragment((1, N), dtype)
            top = T.alloc_fragment((1,), dtype)
            T.copy(X[bx, 0], row)
            T.reduce_max(row, top, dim=1)
            Y[bx, 0] = top[0]

    return main


class ModelNew(nn.Module):
    # Zeros in the place of the maxima are as good, but for large numbers.
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(64, 32))
        self.b = nn.Parameter(torch.zeros(64))

    def forward(self, x):
        scores = F.linear(x, self.w, self.b)
        powers = torch.exp(scores - largest(scores.shape[0], scores.shape[1])(scores))
        return powers / powers.sum(-1, keepdim=True)
