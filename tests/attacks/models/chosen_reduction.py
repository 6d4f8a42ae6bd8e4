import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A flag among keywords chooses how a loss is put together, another one whether rows are normalised."""

    def forward(self, x, y, mean, unit):
        if unit:
            x, y = F.normalize(x, dim=-1), F.normalize(y, dim=-1)
        d = (x - y).square().sum(-1)
        return d.mean() if mean else d.sum()


def get_inputs():
    return [torch.randn(64, 32), torch.randn(64, 32), True, False]


def get_init_inputs():
    return []
