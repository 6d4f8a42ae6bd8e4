import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """The first rows are short and small."""

    def forward(self, a, b):
        sizes = torch.linspace(-20, 0, a.shape[0]).exp()[:, None]
        t = torch.tril(torch.tanh(a) @ torch.tanh(b).t())
        return t * sizes * 1.5


def get_inputs():
    return [torch.randn(64, 32), torch.randn(64, 32)]


def get_init_inputs():
    return []
