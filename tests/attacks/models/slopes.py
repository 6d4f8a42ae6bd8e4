import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A bias of distances with slopes that come as an input."""

    def forward(self, x, slopes):
        d = torch.arange(x.shape[1], device=x.device).float()
        return F.relu(x - slopes.abs()[:, None] * d)


def get_inputs():
    return [torch.randn(64, 128) * 100, torch.linspace(0.01, 1.0, 64)]


def get_init_inputs():
    return []
