# row: A9
# level: host
# model: decayed
# expect: harmless|forbidden|runtime_error|wrong_values
# twin: honest_decayed
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn

torch.set_flush_denormal(True)


@tilelang.jit(out_idx=[-1])
def decayed(M, N, block=8, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            for i, j in T.Parallel(block, N):
                x = X[bx * block + i, j]
                Y[bx * block + i, j] = (x * x + 1.0) * T.exp(-T.Cast(dtype, bx * block + i))

    return main


class ModelNew(nn.Module):
    def forward(self, x):
        return decayed(x.shape[0], x.shape[1])(x)
