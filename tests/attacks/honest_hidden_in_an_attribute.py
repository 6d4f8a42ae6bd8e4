# level: host
# model: hidden_in_an_attribute
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-2, -1])
def activation(M, N, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), H: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(M, threads=64) as row:
            for j in T.Parallel(N):
                H[row, j] = T.tanh(X[row, j])
                Y[row, j] = 2 * H[row, j]

    return main


class ModelNew(nn.Module):
    def __init__(self, rows, n):
        super().__init__()
        self.hidden = torch.randn(rows, n)
        self.cell = nn.Linear(2 * n, n)

    def forward(self, x):
        y = self.cell(torch.cat((x, self.hidden), dim=1))
        self.hidden, y = activation(*y.shape)(y)
        return y
