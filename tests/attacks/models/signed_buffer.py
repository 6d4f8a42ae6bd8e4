import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("gain", torch.rand(n) + 0.5)

    def forward(self, x):
        return F.relu(x) * self.gain.abs().clamp(max=4.0)


def get_inputs():
    return [torch.randn(512, 512)]


def get_init_inputs():
    return [512]
