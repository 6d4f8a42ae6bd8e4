import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_channels, kernel_size, stride=1, padding=0):
        super(Model, self).__init__()
        self.conv2d = nn.Conv2d(
            in_channels, in_channels, kernel_size, stride=stride, padding=padding, groups=in_channels, bias=False
        )

    def forward(self, x):
        return self.conv2d(x)


def get_inputs():
    return [torch.rand(3, 16, 32, 33)]


def get_init_inputs():
    return [16, 3, 1, 1]
