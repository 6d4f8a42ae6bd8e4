"""Norms of rows too long for registers: of a group of channels, whose lines no block divides, and of a few long rows."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(2, 4)

    def forward(self, x, rows):
        centered = rows - rows.mean(dim=1, keepdim=True)
        return self.norm(torch.nn.functional.gelu(x)), centered / rows.std(dim=1, keepdim=True)


def get_inputs():
    return [torch.randn(1, 4, 127, 131) + 1, torch.randn(1, 65537) * 2 + 5]


def get_init_inputs():
    return []
