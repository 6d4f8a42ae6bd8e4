import torch
import torch.nn as nn


class Model(nn.Module):
    """Streaming: scales by the row of the next position, counts positions and values."""

    def __init__(self, n):
        super().__init__()
        self.table = nn.Parameter(torch.randn(16, n))
        self.register_buffer("position", torch.zeros(1, dtype=torch.long))
        self.register_buffer("counts", torch.zeros(32, dtype=torch.long))

    def forward(self, x):
        y = torch.relu(x * self.table[self.position])
        self.position.add_(1).remainder_(16)
        self.counts.add_(torch.histc(x, 32, -4.0, 4.0).long())
        return y


def get_inputs():
    return [torch.randn(128, 64)]


def get_init_inputs():
    return [64]
