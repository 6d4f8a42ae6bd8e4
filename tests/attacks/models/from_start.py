import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Adds the position embedding from `start` on."""

    def __init__(self, n, d):
        super().__init__()
        self.table = nn.Parameter(torch.randn(n, d))

    def forward(self, x, start):
        return F.relu(x + self.table[start + torch.arange(x.shape[0], device=x.device)])


def get_inputs():
    return [torch.randn(128, 256), torch.tensor(17)]


def get_init_inputs():
    return [256, 256]
