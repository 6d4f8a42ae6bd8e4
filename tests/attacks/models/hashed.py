import torch
import torch.nn as nn


class Model(nn.Module):
    """Buckets of whole numbers."""

    def forward(self, x):
        return (x * 31 + 7) % 1000


def get_inputs():
    return [torch.randint(0, 1000, (64, 32))]


def get_init_inputs():
    return []
