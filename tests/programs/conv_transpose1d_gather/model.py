import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, dilation):
        super(Model, self).__init__()
        self.conv1d_transpose = nn.ConvTranspose1d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, dilation=dilation, bias=False
        )

    def forward(self, x):
        return self.conv1d_transpose(x)


def get_inputs():
    return [torch.rand(2, 10, 64)]


def get_init_inputs():
    return [10, 14, 5, 2, 1, 2]
