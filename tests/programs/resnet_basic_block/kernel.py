import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _build_add_relu_kernel(numel: int, block_size: int = 256, dtype: str = "float16"):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def add_relu(
        A: T.Tensor((numel,), dtype),
        B: T.Tensor((numel,), dtype),
        C: T.Tensor((numel,), dtype),
    ):
        with T.Kernel(T.ceildiv(numel, block_size), threads=block_size) as bx:
            tx = T.get_thread_binding(0)
            idx = bx * block_size + tx
            if idx < numel:
                C[idx] = T.max(A[idx] + B[idx], T.Cast(dtype, 0))

    return add_relu


def _build_relu_kernel(numel: int, block_size: int = 256, dtype: str = "float16"):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def relu(A: T.Tensor((numel,), dtype), C: T.Tensor((numel,), dtype)):
        with T.Kernel(T.ceildiv(numel, block_size), threads=block_size) as bx:
            tx = T.get_thread_binding(0)
            idx = bx * block_size + tx
            if idx < numel:
                C[idx] = T.if_then_else(A[idx] > T.Cast(dtype, 0), A[idx], T.Cast(dtype, 0))

    return relu


class ModelNew(nn.Module):
    expansion = 1

    def __init__(self, in_channels, out_channels, stride=1):
        super(ModelNew, self).__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.downsample = nn.Sequential(
            nn.Conv2d(in_channels, out_channels * self.expansion, kernel_size=1, stride=stride, bias=False),
            nn.BatchNorm2d(out_channels * self.expansion),
        )
        self._relu_cache = {}
        self._add_relu_cache = {}

    def _relu(self, x):
        x16 = x.to(torch.float16).contiguous()
        n = x16.numel()
        if n not in self._relu_cache:
            self._relu_cache[n] = _build_relu_kernel(n)
        return self._relu_cache[n](x16.view(-1)).view_as(x16).to(x.dtype)

    def _add_relu(self, a, b):
        a16 = a.to(torch.float16).contiguous()
        b16 = b.to(torch.float16).contiguous()
        n = a16.numel()
        if n not in self._add_relu_cache:
            self._add_relu_cache[n] = _build_add_relu_kernel(n)
        return self._add_relu_cache[n](a16.view(-1), b16.view(-1)).view_as(a16).to(a.dtype)

    def forward(self, x):
        identity = self.downsample(x) if self.downsample is not None else x
        out = self._relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return self._add_relu(out, identity)
