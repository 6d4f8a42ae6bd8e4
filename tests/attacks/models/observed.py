import torch
import torch.nn as nn


class Model(nn.Module):
    """Normalises observations by buffers, as a checkpoint fills them."""

    def __init__(self, n):
        super().__init__()
        self.register_buffer("center", torch.zeros(n))
        self.register_buffer("width", torch.ones(n))

    def forward(self, x):
        return torch.relu((x - self.center) / self.width)


def get_inputs():
    return [torch.randn(256, 128)]


def get_init_inputs():
    return [128]
