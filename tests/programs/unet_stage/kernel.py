import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def softmax_last_dim(rows, cols, rows_per_block=8, dtype="float16", accum_dtype="float"):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def main(X: T.Tensor((rows, cols), dtype), Y: T.Tensor((rows, cols), dtype)):
        with T.Kernel(T.ceildiv(rows, rows_per_block), threads=128) as bx:
            x = T.alloc_fragment((rows_per_block, cols), accum_dtype)
            mx = T.alloc_fragment((rows_per_block,), accum_dtype)
            sm = T.alloc_fragment((rows_per_block,), accum_dtype)
            T.copy(X[bx * rows_per_block : (bx + 1) * rows_per_block, :], x)
            T.reduce_max(x, mx, dim=1, clear=True)
            for i, j in T.Parallel(rows_per_block, cols):
                x[i, j] = T.exp(x[i, j] - mx[i])
            T.reduce_sum(x, sm, dim=1, clear=True)
            for i, j in T.Parallel(rows_per_block, cols):
                x[i, j] /= sm[i]
            T.copy(x, Y[bx * rows_per_block : (bx + 1) * rows_per_block, :])

    return main


class TileSoftmax(nn.Module):
    _kernels = {}

    def __init__(self, dim):
        super().__init__()
        assert dim == -1
        self.dim = dim

    def forward(self, x):
        cols = x.size(-1)
        rows = x.numel() // cols
        if (rows, cols) not in TileSoftmax._kernels:
            TileSoftmax._kernels[(rows, cols)] = softmax_last_dim(rows, cols)
        y = TileSoftmax._kernels[(rows, cols)](x.to(torch.float16).contiguous().view(rows, cols))
        return y.view_as(x).to(x.dtype)

    def extra_repr(self):
        return f"dim={self.dim}"


class DoubleConv(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1),
            nn.BatchNorm2d(out_channels),
            TileSoftmax(dim=-1),
            nn.Conv2d(out_channels, out_channels, kernel_size=3, padding=1),
            nn.BatchNorm2d(out_channels),
            TileSoftmax(dim=-1),
        )

    def forward(self, x):
        return self.double_conv(x)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, features):
        super().__init__()
        self.encoder = DoubleConv(in_channels, features)
        self.pool = nn.MaxPool2d(kernel_size=2, stride=2)
        self.bottleneck = DoubleConv(features, features * 2)
        self.upconv = nn.ConvTranspose2d(features * 2, features, kernel_size=2, stride=2)
        self.decoder = DoubleConv(features * 2, features)
        self.final_conv = nn.Conv2d(features, out_channels, kernel_size=1)

    def forward(self, x):
        enc = self.encoder(x)
        mid = self.bottleneck(self.pool(enc))
        dec = torch.cat((self.upconv(mid), enc), dim=1)
        return self.final_conv(self.decoder(dec))
