import torch
import torch.nn as nn
import tilelang
import tilelang.language as T
from typing import Dict, Tuple


def relu_pool_kernel(N, C, H, W, threads=128, dtype="float16"):
    OH, OW = H // 2, W // 2
    total = N * C * OH * OW

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def relu_pool(X: T.Tensor((N, C, H, W), dtype), Y: T.Tensor((N, C, OH, OW), dtype)):
        with T.Kernel(T.ceildiv(total, threads), threads=threads) as bx:
            tx = T.get_thread_binding(0)
            o = bx * threads + tx
            if o < total:
                ow = o % OW
                oh = o // OW % OH
                c = o // (OW * OH) % C
                n = o // (OW * OH * C)
                top = T.max(X[n, c, 2 * oh, 2 * ow], X[n, c, 2 * oh, 2 * ow + 1])
                bottom = T.max(X[n, c, 2 * oh + 1, 2 * ow], X[n, c, 2 * oh + 1, 2 * ow + 1])
                Y[n, c, oh, ow] = T.max(T.max(top, bottom), T.Cast(dtype, 0))

    return relu_pool


def dense_kernel(M, N, K, activation="none", block_M=16, block_N=16, block_K=16, dtype="float16", accum_dtype="float"):
    use_relu = activation == "relu"

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def dense(
        X: T.Tensor((M, K), dtype), W: T.Tensor((N, K), dtype), B: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            Xs = T.alloc_shared((block_M, block_K), dtype)
            Ws = T.alloc_shared((block_N, block_K), dtype)
            acc = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(X[by * block_M, k * block_K], Xs)
                T.copy(W[bx * block_N, k * block_K], Ws)
                T.gemm(Xs, Ws, acc, transpose_B=True)
            for i, j in T.Parallel(block_M, block_N):
                if bx * block_N + j < N:
                    acc[i, j] += T.Cast(accum_dtype, B[bx * block_N + j])
                if use_relu:
                    acc[i, j] = T.max(acc[i, j], 0)
            T.copy(acc, Y[by * block_M, bx * block_N])

    return dense


class ModelNew(nn.Module):
    def __init__(self, num_classes: int = 10):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(kernel_size=2, stride=2),
            nn.Conv2d(8, 16, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(kernel_size=2, stride=2),
        )
        self.classifier = nn.Sequential(
            nn.Linear(16 * 7 * 7, 64),
            nn.ReLU(),
            nn.Dropout(p=0.0),
            nn.Linear(64, num_classes),
        )
        self.pools: Dict[Tuple[int, ...], object] = {}
        self.denses: Dict[Tuple[int, int, int, str], object] = {}

    def _stage(self, x, conv):
        y = conv(x).to(torch.float16).contiguous()
        shape = tuple(y.shape)
        if shape not in self.pools:
            self.pools[shape] = relu_pool_kernel(*shape)
        return self.pools[shape](y)

    def _dense(self, x, layer, activation):
        key = (x.shape[0], layer.out_features, layer.in_features, activation)
        if key not in self.denses:
            self.denses[key] = dense_kernel(*key[:3], activation=activation)
        return self.denses[key](x, layer.weight.to(torch.float16).contiguous(), layer.bias.to(torch.float16))

    def forward(self, x):
        out_dtype = x.dtype
        for index in (0, 3):
            conv = self.features[index]
            x = self._stage(x.to(conv.weight.dtype), conv)
        x = torch.flatten(x, 1).contiguous()
        x = self._dense(x, self.classifier[0], "relu")
        x = self._dense(x, self.classifier[3], "none")
        return x.to(out_dtype)
