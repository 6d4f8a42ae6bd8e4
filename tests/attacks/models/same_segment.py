import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, y, a, b):
        s = F.relu(x) @ y.t()
        return torch.where(a[:, None] == b[None, :], torch.zeros_like(s), s)


def get_inputs():
    return [torch.randn(32, 64), torch.randn(32, 64), torch.randint(0, 1000000, (32,)), torch.randint(0, 1000000, (32,))]


def get_init_inputs():
    return []
