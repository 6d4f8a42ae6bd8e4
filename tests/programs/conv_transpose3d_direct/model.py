import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, output_padding):
        super(Model, self).__init__()
        self.conv_transpose3d = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, output_padding=output_padding
        )

    def forward(self, x):
        return self.conv_transpose3d(x)


def get_inputs():
    return [torch.rand(1, 6, 6, 7, 8)]


def get_init_inputs():
    return [6, 5, 3, 2, 1, 1]
