import torch
import torch.nn as nn


class Model(nn.Module):
    """A matrix times a vector, plus a bias per row."""

    def __init__(self, rows):
        super(Model, self).__init__()
        self.offset = nn.Parameter(torch.randn(rows))

    def forward(self, A, v):
        return torch.mv(A, v) + self.offset


def get_inputs():
    return [torch.randn(150, 1000), torch.randn(1000)]


def get_init_inputs():
    return [150]
