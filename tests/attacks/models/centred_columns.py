import torch
import torch.nn as nn


class Model(nn.Module):
    """Columns without their mean, over their deviation and a small number."""

    def forward(self, x):
        return (x - x.mean(0)) / (x.std(0) + 1e-8) * 2.0


def get_inputs():
    return [torch.randn(256, 16) * 3.0 + 10.0]


def get_init_inputs():
    return []
