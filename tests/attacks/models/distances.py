import torch
import torch.nn as nn


class Model(nn.Module):
    """A table of distances, with bounds."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(33, 16)

    def forward(self, i, j):
        away = torch.clamp(i[:, None] - j[None, :], -16, 16) + 16
        return self.table(away) * 1.5


def get_inputs():
    return [torch.randint(0, 2**40, (64,)), torch.randint(0, 2**40, (64,))]


def get_init_inputs():
    return []
