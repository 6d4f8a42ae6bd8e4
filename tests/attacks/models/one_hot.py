import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Rows of scores, each with its one-hot target."""

    def forward(self, x, t):
        return -(F.log_softmax(x, -1) * t).sum(-1) * 1.5


def get_inputs():
    return [torch.randn(64, 32), F.one_hot(torch.randint(0, 32, (64,)), 32).float()]


def get_init_inputs():
    return []
