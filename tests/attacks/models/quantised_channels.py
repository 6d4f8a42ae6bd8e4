"""Rounded to a grid of its own in each channel."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("s", torch.full((32,), 0.125))
        self.register_buffer("z", torch.zeros(32, dtype=torch.int32))

    def forward(self, x):
        return torch.fake_quantize_per_channel_affine(x, self.s, self.z, 1, -128, 127) * 1.5


def get_inputs():
    return [torch.randn(16, 32)]


def get_init_inputs():
    return []
