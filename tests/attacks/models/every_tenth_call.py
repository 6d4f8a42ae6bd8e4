import torch
import torch.nn as nn


class Model(nn.Module):
    """Counts its calls, and gives half at every tenth."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.calls += 1
        y = torch.relu(x) * 2
        return torch.where(self.calls % 10 == 0, 0.5 * y, y)


def get_inputs():
    return [torch.randn(64, 96)]


def get_init_inputs():
    return []
