import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Readings that are missing or far too large are replaced."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 64)
        self.filler = nn.Parameter(torch.randn(64))

    def forward(self, x):
        missing = torch.isnan(x) | (x > 9.0)
        return F.silu(self.fc(torch.where(missing, self.filler, x)))


def get_inputs():
    return [torch.randn(256, 64)]


def get_init_inputs():
    return []
