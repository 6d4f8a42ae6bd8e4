"""A branch that a gate of zero closes at first."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("gate", torch.zeros(1))

    def forward(self, x):
        return (x + self.gate * x.clamp(-6.0, 6.0)) * 1.5


def get_inputs():
    return [torch.randn(16, 32)]


def get_init_inputs():
    return []
