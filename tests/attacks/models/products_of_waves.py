import torch
import torch.nn as nn


class Model(nn.Module):
    """A constant matrix times itself: nothing draws it."""

    def forward(self, x, wave):
        return x @ (wave @ wave.t())


def get_inputs():
    return [torch.randn(8, 256), torch.sin(torch.arange(65536) * 0.37).view(256, 256)]


def get_init_inputs():
    return []
