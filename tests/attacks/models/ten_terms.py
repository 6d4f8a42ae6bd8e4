import torch
import torch.nn as nn


class Model(nn.Module):
    """Many inputs, one of which goes into a logarithm."""

    def forward(self, a, b, c, d, e, f, g, h, i, j):
        s = torch.log(a) + b + c + d + e + f + g + h
        return s + torch.relu(i) * 1.5 + j.clamp(min=0)


def get_inputs():
    return [torch.rand(64, 64) + 0.1 for _ in range(10)]


def get_init_inputs():
    return []
