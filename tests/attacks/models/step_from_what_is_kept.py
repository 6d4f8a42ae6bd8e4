"""The difference to the input of the call before, which it keeps itself."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(16, 32))

    def forward(self, x):
        step = (x - self.last) * 1.5
        self.last = x.detach()
        return step


def get_inputs():
    return [torch.randn(16, 32)]


def get_init_inputs():
    return []
