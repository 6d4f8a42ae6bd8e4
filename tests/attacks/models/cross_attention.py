import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Attention on other tokens with a bias for each head."""

    def __init__(self, heads):
        super().__init__()
        self.slope = nn.Parameter(torch.randn(heads, 1, 1))

    def forward(self, q, k, v):
        d = torch.arange(q.shape[2])[:, None] - torch.arange(k.shape[2])[None, :]
        s = q @ k.transpose(-1, -2) / 4.0 - self.slope * d.abs()
        return s.softmax(-1) @ v


def get_inputs():
    return [torch.randn(2, 4, 20, 16), torch.randn(2, 4, 52, 16), torch.randn(2, 4, 52, 16)]


def get_init_inputs():
    return [4]
