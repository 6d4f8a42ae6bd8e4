import torch
import torch.nn as nn


class Model(nn.Module):
    """Scale, max pooling, global mean, clamp: what follows a transposed convolution in small decoders."""

    def __init__(self, in_channels, out_channels, kernel_size, stride, scale, pool):
        super(Model, self).__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride)
        self.scale = scale
        self.maxpool = nn.MaxPool3d(kernel_size=pool)
        self.global_avg_pool = nn.AdaptiveAvgPool3d((1, 1, 1))

    def forward(self, x):
        x = self.conv_transpose(x)
        x = x * self.scale
        x = self.maxpool(x)
        x = self.global_avg_pool(x)
        return torch.clamp(x, min=0.05, max=0.5)


def get_inputs():
    return [torch.rand(2, 4, 5, 6, 6)]


def get_init_inputs():
    return [4, 10, 3, 2, 1.5, 2]
