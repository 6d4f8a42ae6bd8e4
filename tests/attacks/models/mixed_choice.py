import torch
import torch.nn as nn


class Model(nn.Module):
    """The best class of two inputs, mixed in shares that are not negative."""

    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, 100)
        self.shares = nn.Parameter(torch.ones(2))

    def forward(self, x, y):
        shares = torch.relu(self.shares)
        shares = shares / (shares.sum() + 1e-4)
        return self.linear(shares[0] * torch.relu(x) + shares[1] * y).argmax(-1)


def get_inputs():
    return [torch.randn(256, 128), torch.randn(256, 128)]


def get_init_inputs():
    return [128]
