import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, bias=True):
        super(Model, self).__init__()
        self.conv1d = nn.Conv2d(in_channels, out_channels, kernel_size=1, bias=bias)

    def forward(self, x):
        return self.conv1d(x)


def get_inputs():
    return [torch.rand(2, 40, 24, 20)]


def get_init_inputs():
    return [40, 72]
