import torch
import torch.nn as nn


class Model(nn.Module):
    """A projection in steps of an eighth, and as whole numbers: next to a step roundings choose the side."""

    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width, bias=False)

    def forward(self, x):
        y = self.linear(x) * 64
        return torch.floor(y) / 8, torch.round(y).to(torch.int32)


def get_inputs():
    return [torch.randn(256, 128)]


def get_init_inputs():
    return [128]
