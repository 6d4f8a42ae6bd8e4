import torch
import torch.nn as nn


class Model(nn.Module):
    """Branches with their own statistics, a norm that runs twice, statistics that are read before and after."""

    def __init__(self, features):
        super().__init__()
        self.left = nn.BatchNorm1d(features)
        self.right = nn.BatchNorm1d(features, momentum=0.3)
        self.twice = nn.BatchNorm1d(features)
        self.last = nn.BatchNorm1d(features)

    def forward(self, x):
        x = x - self.last.running_mean
        y = torch.relu(self.left(x) + self.right(x * x))
        y = self.twice(torch.tanh(self.twice(y)))
        z = self.last(y)
        return torch.cat([x, z], 1) + self.last.running_mean.repeat(2)


def get_inputs():
    return [torch.randn(256, 64) + 0.5]


def get_init_inputs():
    return [64]
