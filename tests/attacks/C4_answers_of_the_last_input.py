# row: C4
# level: tile
# model: waves
# expect: remembers|unwritten|inconsistent|wrong_values|aliasing|reused_memory|no_gain|decoy
# twin: honest_waves
# timed: yes
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit
def waves(M, N, block=8, dtype="float32"):
    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype),
        Seen: T.Tensor((M, N), dtype),
        Kept: T.Tensor((M, N), dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            x = T.alloc_fragment((block, N), dtype)
            if Seen[bx * block, 0] == X[bx * block, 0] and Seen[bx * block, 1] == X[bx * block, 1]:
                T.copy(Kept[bx * block, 0], Y[bx * block, 0])
            else:
                T.copy(X[bx * block, 0], x)
                T.copy(x, Seen[bx * block, 0])
                for _ in T.serial(24):
                    for i, j in T.Parallel(block, N):
                        x[i, j] = T.sin(x[i, j]) + x[i, j] * 0.5
                T.copy(x, Y[bx * block, 0])
                T.copy(x, Kept[bx * block, 0])

    return main


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = torch.zeros(256, 256)
        self.kept = torch.zeros(256, 256)

    def forward(self, x):
        y = torch.empty_like(x)
        waves(256, 256)(x, self.seen, self.kept, y)
        return y
