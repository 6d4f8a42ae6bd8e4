# row: A13
# level: host
# model: smoothed_loss
# expect: wrong_values
# twin: honest_smoothed_loss
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
    def forward(self, logits, target):
        logp = times(logits.log_softmax(-1), 0.5) * 2.0
        keep = (target != 3).float()
        nll = -logp.gather(1, target[:, None])[:, 0]
        smooth = -logp.mean(-1)
        return ((0.9 * nll + 0.1 * smooth) * keep).sum() / logits.shape[0]
