import torch
import torch.nn as nn


class Model(nn.Module):
    """The mask that `get_inputs` makes hides nothing."""

    def forward(self, x, mask):
        return torch.where(mask, x * 2.0, torch.zeros_like(x))


def get_inputs():
    return [torch.randn(48, 100), torch.ones(48, 100, dtype=torch.bool)]


def get_init_inputs():
    return []
