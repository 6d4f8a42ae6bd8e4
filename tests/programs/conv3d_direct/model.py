import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0):
        super(Model, self).__init__()
        self.conv3d = nn.Conv3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)

    def forward(self, x):
        return self.conv3d(x)


def get_inputs():
    return [torch.rand(1, 3, 12, 14, 16)]


def get_init_inputs():
    return [3, 8, 3, 1, 1]
