import torch
import torch.nn as nn


class Model(nn.Module):
    """Long sums, for candidates that add in another order or in lower precision."""

    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, 64)

    def forward(self, x):
        return self.linear(x).sum(dim=1, keepdim=True)


def get_inputs():
    return [torch.randn(128, 2048)]


def get_init_inputs():
    return [2048]
