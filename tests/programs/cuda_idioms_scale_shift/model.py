import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, negative_slope):
        super(Model, self).__init__()
        self.scale = nn.Parameter(torch.randn(features) * 0.02 + 1.0)
        self.shift = nn.Parameter(torch.randn(features))
        self.negative_slope = negative_slope

    def forward(self, x):
        return torch.nn.functional.leaky_relu(x * self.scale + self.shift, self.negative_slope)


def get_inputs():
    return [torch.randn(60, 208)]


def get_init_inputs():
    return [208, 0.1]
