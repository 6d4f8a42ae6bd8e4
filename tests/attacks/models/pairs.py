import torch
import torch.nn as nn


class Model(nn.Module):
    """Each second column goes into a root."""

    def forward(self, x):
        return x[:, 0::2].sqrt() + torch.relu(x[:, 1::2]) * 1.5


def get_inputs():
    return [torch.rand(48, 64) + 0.1]


def get_init_inputs():
    return []
