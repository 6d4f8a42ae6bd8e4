# level: host
# model: best_with_places
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


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
    # Of equal elements the last come first among the four: that is open. The largest of a column is the first.
    def forward(self, x):
        best, places = torch.sort(x.flip(-1), dim=-1, descending=True, stable=True)
        first = x.amax(0)
        place = torch.where(x == first, torch.arange(x.shape[0])[:, None], x.shape[0]).amin(0)
        return times(best[:, :4], 1.5), (x.shape[1] - 1 - places[:, :4]).contiguous(), first, place
