import torch
import torch.nn as nn


class Model(nn.Module):
    """Values on the way that a kernel may stop at: a softmax, a product, a sum, its positive part."""

    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features) * 30)
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x):
        shares = torch.softmax(x, dim=1)
        return torch.relu(shares * self.weight + self.bias)


def get_inputs():
    return [torch.randn(40, 96)]


def get_init_inputs():
    return [96]
