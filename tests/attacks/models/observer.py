import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Watches how large its inputs become, as quantisation does."""

    def __init__(self):
        super().__init__()
        self.register_buffer("largest", torch.zeros(()))

    def forward(self, x):
        self.largest.copy_(torch.maximum(self.largest, x.abs().max()))
        return x * 1.5


def get_inputs():
    return [torch.rand(64, 128)]


def get_init_inputs():
    return []
