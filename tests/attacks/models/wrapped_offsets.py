import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Table rows by an offset that wraps around, and whose parity gives a sign."""

    def __init__(self, n, m):
        super().__init__()
        self.table = nn.Parameter(torch.randn(n, m))

    def forward(self, steps):
        row = torch.remainder(steps, self.table.shape[0])
        sign = 1.0 - 2.0 * torch.remainder(steps, 2).float()
        return self.table[row] * sign[..., None]


def get_inputs():
    return [torch.randint(-40, 40, (16, 32))]


def get_init_inputs():
    return [24, 16]
