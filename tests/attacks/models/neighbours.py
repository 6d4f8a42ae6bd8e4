import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Each element plus the one before it, and the largest of its row so far."""

    def forward(self, x):
        y = x.clone()
        y[:, 1:] = x[:, 1:] + x[:, :-1]
        return y


def get_inputs():
    return [torch.randn(64, 128)]


def get_init_inputs():
    return []
