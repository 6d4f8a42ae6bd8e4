import torch
import torch.nn as nn


class Model(nn.Module):
    """Normalised rows, of which a few hold one number only: what is left of those is their rounding."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    x = torch.randn(1024, 256)
    x[torch.randint(1024, (2,))] = 1000.0
    return [x]


def get_init_inputs():
    return [256]
