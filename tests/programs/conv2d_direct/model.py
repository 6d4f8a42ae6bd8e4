import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding):
        super(Model, self).__init__()
        self.conv2d = nn.Conv2d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)

    def forward(self, x):
        return self.conv2d(x)


def get_inputs():
    return [torch.rand(2, 6, 28, 30)]


def get_init_inputs():
    return [6, 10, (3, 5), (2, 1), (1, 2)]
