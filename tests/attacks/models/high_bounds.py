import torch
import torch.nn as nn


class Model(nn.Module):
    """Its bounds are further away than usual inputs."""

    def __init__(self):
        super().__init__()

    def forward(self, x):
        return x.clamp(-1e7, 1e7) * 1.5


def get_inputs():
    return [torch.randn(64, 128)]


def get_init_inputs():
    return []
