import torch
import torch.nn as nn


class Model(nn.Module):
    """The first column goes into a logarithm."""

    def forward(self, x):
        return torch.log(x[:, :1]) + torch.relu(x[:, 1:]) * 1.5


def get_inputs():
    return [torch.rand(64, 33) + 0.1]


def get_init_inputs():
    return []
