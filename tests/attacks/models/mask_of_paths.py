import torch
import torch.nn as nn


class Model(nn.Module):
    """Counts the paths of three steps that a constant mask allows."""

    def forward(self, x, mask):
        step = mask.float()
        return x @ (step @ step @ step / 10000.0)


def get_inputs():
    return [torch.randn(32, 256), torch.ones(256, 256).tril().bool()]


def get_init_inputs():
    return []
