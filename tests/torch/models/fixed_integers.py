import torch
import torch.nn as nn


class Model(nn.Module):
    """Rows of a table, always the same ones."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(64, 128))

    def forward(self, rows):
        return torch.relu(self.table[rows])


def get_inputs():
    return [torch.arange(96) * 7 % 64]


def get_init_inputs():
    return []
