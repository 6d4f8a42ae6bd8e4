import torch
import torch.nn as nn


class Model(nn.Module):
    """A flag chooses a layer, a number says how often, and another flag changes nothing."""

    def __init__(self):
        super().__init__()
        self.one = nn.Linear(8, 8)
        self.two = nn.Linear(8, 8)

    def forward(self, x, wide, steps, loud):
        x = self.two(x) + torch.tensor([0.5, 1.5]).repeat(4) if wide else self.one(x)
        for _ in range(steps):
            x = torch.tanh(x)
        return x


def get_inputs():
    return [torch.randn(8, 8), False, 2, True]


def get_init_inputs():
    return []
