import torch
import torch.nn as nn


class Model(nn.Module):
    """A degenerate task: the right answer is a copy of an input."""

    def forward(self, x):
        return x.clone()


def get_inputs():
    return [torch.randn(16, 32)]


def get_init_inputs():
    return []
