import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Three numbers of three sizes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor([1000.0, 1.0, 0.001]))

    def forward(self, x):
        return torch.sigmoid(x * 1.5).mean(dim=(0, 2)) * self.scale


def get_inputs():
    return [torch.randn(8, 3, 64)]


def get_init_inputs():
    return []
