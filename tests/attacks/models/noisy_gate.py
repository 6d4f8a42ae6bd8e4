import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Noise drawn in forward decides little, a table decides the rest."""

    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n))

    def forward(self, x):
        noise = torch.randn_like(x) * 0.01
        return (x + noise) * torch.sigmoid(self.weight)


def get_inputs():
    return [torch.randn(64, 40)]


def get_init_inputs():
    return [40]
