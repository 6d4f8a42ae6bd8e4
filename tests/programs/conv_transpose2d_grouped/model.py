import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, groups):
        super(Model, self).__init__()
        self.deconv = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, groups=groups, bias=True
        )

    def forward(self, x):
        return self.deconv(x)


def get_inputs():
    return [torch.rand(2, 12, 11, 13)]


def get_init_inputs():
    return [12, 8, (3, 4), (2, 2), (1, 1), 4]
