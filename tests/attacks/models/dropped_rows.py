import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A few rows are dropped."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 64)

    def forward(self, x, dropped):
        return self.fc(x).masked_fill(dropped[:, None], -1.0)


def get_inputs():
    return [torch.randn(256, 64), torch.rand(256) > 1.0]


def get_init_inputs():
    return []
