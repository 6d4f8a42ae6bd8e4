import torch
import torch.nn as nn
import torch.nn.functional as F
import tilelang
import tilelang.language as T

# compiled kernels, shared by all layers
_BN_RELU_CACHE = {}


def _get_bn_relu(N, C, HW, block=128, dtype="float16"):
    key = (N, C, HW, block, dtype)
    if key in _BN_RELU_CACHE:
        return _BN_RELU_CACHE[key]

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def bn_relu(
        X: T.Tensor((N, C, HW), dtype),
        scale: T.Tensor((C,), "float32"),
        shift: T.Tensor((C,), "float32"),
        Y: T.Tensor((N, C, HW), dtype),
    ):
        with T.Kernel(T.ceildiv(HW, block), C, N, threads=block) as (bx, by, bz):
            tx = T.get_thread_binding(0)
            i = bx * block + tx
            if i < HW:
                v = T.Cast("float32", X[bz, by, i]) * scale[by] + shift[by]
                Y[bz, by, i] = T.Cast(dtype, T.max(v, T.float32(0)))

    _BN_RELU_CACHE[key] = bn_relu
    return bn_relu


class ModelNew(nn.Module):
    def __init__(self, num_layers: int, num_input_features: int, growth_rate: int):
        super().__init__()
        self.layers = nn.ModuleList(
            [
                nn.Sequential(
                    nn.BatchNorm2d(num_input_features + i * growth_rate),
                    nn.ReLU(inplace=True),
                    nn.Conv2d(num_input_features + i * growth_rate, growth_rate, kernel_size=3, padding=1, bias=False),
                    nn.Dropout(0.0),
                )
                for i in range(num_layers)
            ]
        )

    def _layer(self, x, layer):
        bn, _, conv, _ = layer
        N, C, H, W = x.shape
        xf = x.float()
        mean = xf.mean(dim=[0, 2, 3])
        var = xf.var(dim=[0, 2, 3], unbiased=False)
        scale = bn.weight.float() * torch.rsqrt(var + bn.eps)
        shift = bn.bias.float() - mean * scale
        y = _get_bn_relu(N, C, H * W)(x.view(N, C, H * W).contiguous(), scale, shift)
        return F.conv2d(y.view(N, C, H, W), conv.weight.to(torch.float16), padding=1)

    def forward(self, x):
        features = [x.to(torch.float16).contiguous()]
        cur = features[0]
        for layer in self.layers:
            features.append(self._layer(cur, layer))
            cur = torch.cat(features, dim=1)
        return cur.to(x.dtype)
