import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Attention with shared queries and keys, as in Reformer, after a norm."""

    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.value = nn.Linear(d, d)

    def forward(self, x):
        h = self.norm(x)
        v = self.value(h)
        return x + F.softmax(h @ h.transpose(1, 2) / h.shape[-1] ** 0.5, dim=-1) @ v


def get_inputs():
    return [torch.randn(4, 64, 128)]


def get_init_inputs():
    return [128]
