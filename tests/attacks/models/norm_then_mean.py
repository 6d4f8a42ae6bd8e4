import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Instance norm without gain, and the mean of each channel."""

    def forward(self, x):
        return F.instance_norm(x).mean((-2, -1))


def get_inputs():
    return [torch.randn(8, 16, 12, 12)]


def get_init_inputs():
    return []
