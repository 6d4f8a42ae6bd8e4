import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, min_value, divisor):
        super(Model, self).__init__()
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding
        )
        self.min_value = min_value
        self.divisor = divisor
        self.sum_tensor = nn.Parameter(torch.randn(out_channels, 1, 1, 1))

    def forward(self, x):
        x = self.conv_transpose(x)
        x = torch.clamp(x, min=self.min_value)
        x = x / self.divisor
        x = x + self.sum_tensor
        x = torch.nn.functional.gelu(x)
        return x


def get_inputs():
    return [torch.randn(2, 6, 6, 7, 8)]


def get_init_inputs():
    return [6, 8, 3, 2, 1, -0.1, 2.0]
