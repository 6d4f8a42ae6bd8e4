import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Whitens features: mean and matrix are set from data later."""

    def __init__(self, d):
        super().__init__()
        self.register_buffer("center", torch.zeros(d))
        self.register_buffer("whiten", torch.eye(d))

    def forward(self, x):
        return F.relu((x - self.center) @ self.whiten)


def get_inputs():
    return [torch.randn(128, 128)]


def get_init_inputs():
    return [128]
