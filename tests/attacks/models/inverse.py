import torch
import torch.nn as nn


class Model(nn.Module):
    """Solutions of systems whose condition differs from draw to draw."""

    def forward(self, a, b):
        g = a @ a.t()
        return torch.linalg.inv(g) @ b, torch.logdet(g)


def get_inputs():
    return [torch.randn(64, 66), torch.randn(64, 16)]


def get_init_inputs():
    return []
