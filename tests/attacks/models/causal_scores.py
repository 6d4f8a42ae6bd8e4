import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Attention scores with a bias and a causal mask."""

    def forward(self, q, k, bias):
        s = F.relu(q) @ k.t() + bias
        mask = torch.ones(s.shape, dtype=torch.bool, device=s.device).triu(1)
        return s.masked_fill(mask, float("-inf"))


def get_inputs():
    return [torch.rand(64, 128), torch.randn(64, 128), torch.randn(64, 64)]


def get_init_inputs():
    return []
