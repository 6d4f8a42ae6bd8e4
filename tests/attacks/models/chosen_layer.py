import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A flag chooses another layer and a table; a number says how often."""

    def __init__(self):
        super().__init__()
        self.one = nn.Linear(32, 32)
        self.two = nn.Linear(32, 32)
        self.register_buffer("offset", torch.randn(32))

    def forward(self, x, options, steps: int):
        if options["wide"]:
            x = self.two(x) + torch.tensor([0.5, 1.5]).repeat(16) + self.offset
        else:
            x = self.one(x)
        for _ in range(steps):
            x = torch.tanh(x) * 1.25
        return x


def get_inputs():
    return [torch.randn(128, 32), {"wide": False, "name": "plain"}, 2]


def get_init_inputs():
    return []
