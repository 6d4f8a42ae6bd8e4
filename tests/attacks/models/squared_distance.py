import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A loss over a million elements."""

    def forward(self, x, y):
        return F.mse_loss(x * 1.5, y)


def get_inputs():
    return [torch.rand(1024, 1024), torch.rand(1024, 1024)]


def get_init_inputs():
    return []
