import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, dilation=1, bias=False):
        super(Model, self).__init__()
        self.conv1d = nn.Conv1d(
            in_channels, out_channels, kernel_size, stride=stride, dilation=dilation, bias=bias
        )

    def forward(self, x):
        return self.conv1d(x)


def get_inputs():
    return [torch.rand(3, 12, 200)]


def get_init_inputs():
    return [12, 20, 3, 2, 4]
