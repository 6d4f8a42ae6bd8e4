import torch
import torch.nn as nn


class Model(nn.Module):
    """Rows in as many steps as eight bits hold, scaled by their largest element."""

    def forward(self, x):
        scale = x.abs().amax(-1, keepdim=True) / 127.0
        return torch.round(x / scale).clamp(-127, 127) * scale * 2.0


def get_inputs():
    return [torch.randn(64, 128)]


def get_init_inputs():
    return []
