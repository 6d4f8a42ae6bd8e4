import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Missing values count as zero."""

    def __init__(self, d):
        super().__init__()
        self.fc = nn.Linear(d, d)

    def forward(self, x):
        return F.relu(self.fc(torch.nan_to_num(x)))


def get_inputs():
    return [torch.randn(64, 64)]


def get_init_inputs():
    return [64]
