import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Two numbers of each row are not zero."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(32, 64)
        self.trust = nn.Linear(32, 1)

    def forward(self, x):
        p = torch.softmax(self.gate(x), -1)
        v, i = p.topk(2, dim=-1)
        s = torch.exp(-20 * torch.sigmoid(8 * self.trust(x)))
        return torch.zeros_like(p).scatter(1, i, v / v.sum(-1, keepdim=True) * s * 1.5)


def get_inputs():
    return [torch.randn(128, 32)]


def get_init_inputs():
    return []
