import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Rows of a table, by numbers of a large range."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(50000, 16))

    def forward(self, i):
        return self.table[i] * 1.5


def get_inputs():
    return [torch.randint(0, 50000, (8,))]


def get_init_inputs():
    return []
