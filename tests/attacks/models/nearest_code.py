import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """The nearest row of a table for each row, and the mean squared distance to it."""

    def __init__(self, n, codes):
        super().__init__()
        self.codes = nn.Parameter(torch.randn(codes, n))

    def forward(self, x):
        which = torch.cdist(x, self.codes).argmin(-1)
        y = self.codes[which]
        return y, which, (x - y).square().mean()


def get_inputs():
    return [torch.randn(128, 16)]


def get_init_inputs():
    return [16, 40]
