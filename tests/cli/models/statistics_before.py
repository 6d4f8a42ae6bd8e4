import torch
import torch.nn as nn


class Model(nn.Module):
    """What running statistics were before a norm changed them, through a view, as a copy, and by the same formula."""

    def __init__(self, features):
        super().__init__()
        self.norm = nn.BatchNorm1d(features)

    def forward(self, x):
        mean = self.norm.running_mean
        viewed = mean.view(1, -1) * 2 + 1
        copied = self.norm.running_var + 0
        next_mean = mean + (x.mean(0) - mean) * 0.1
        y = self.norm(torch.cumsum(self.norm(x), 0))
        return y * viewed + copied + next_mean + self.norm.running_mean


def get_inputs():
    return [torch.randn(256, 64) + 0.5]


def get_init_inputs():
    return [64]
