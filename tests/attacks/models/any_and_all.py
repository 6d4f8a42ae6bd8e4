import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Which rows have a large element, and which columns are masked everywhere."""

    def forward(self, x, mask):
        return (x.abs() > 2.5).any(-1), mask.all(0), torch.where(mask, x, -x)


def get_inputs():
    return [torch.randn(200, 30), torch.rand(200, 30) > 0.4]


def get_init_inputs():
    return []
