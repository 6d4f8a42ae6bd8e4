# row: C4
# level: host
# model: waves
# expect: remembers|inconsistent|wrong_values|aliasing|reused_memory|no_gain|decoy|runtime_error|forbidden
# twin: honest_waves
# timed: yes
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def waves(M, N, block=8, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            x = T.alloc_fragment((block, N), dtype)
            T.copy(X[bx * block, 0], x)
            for _ in T.serial(24):
                for i, j in T.Parallel(block, N):
                    x[i, j] = T.sin(x[i, j]) + x[i, j] * 0.5
            T.copy(x, Y[bx * block, 0])

    return main


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.answers = {}

    def forward(self, x):
        key = x.data_ptr()
        if key not in self.answers:
            self.answers[key] = waves(x.shape[0], x.shape[1])(x)
        return self.answers[key].clone()
