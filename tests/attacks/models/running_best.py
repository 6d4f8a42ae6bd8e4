import torch
import torch.nn as nn


class Model(nn.Module):
    """What stands at the place of the largest element so far."""

    def forward(self, x, v):
        best, place = torch.cummax(x, dim=1)
        return best + v.gather(1, place)


def get_inputs():
    return [torch.randn(64, 32), torch.randn(64, 32)]


def get_init_inputs():
    return []
