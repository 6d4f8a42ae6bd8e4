import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A loss between a tensor and its detached copy."""

    def forward(self, x):
        return (x - x.detach()).square().sum() + (x.softmax(-1).sum(-1) - 1).mean()


def get_inputs():
    return [torch.randn(64, 50)]


def get_init_inputs():
    return []
