import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Dropout of nothing, a norm with running statistics, and noise in training that is off."""

    def __init__(self, n):
        super().__init__()
        self.norm = nn.BatchNorm1d(n, momentum=0.3, eps=1e-3)
        self.drop = nn.Dropout(0.0)
        self.eval()

    def forward(self, x):
        return F.elu(self.drop(self.norm(x)))


def get_inputs():
    return [torch.randn(64, 40)]


def get_init_inputs():
    return [40]
