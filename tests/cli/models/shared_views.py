import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Queries and keys that lie beside each other."""

    def __init__(self, features):
        super().__init__()
        self.both = nn.Linear(features, 2 * features)

    def forward(self, x):
        both = self.both(x).view(4, 64, 2, 32).transpose(0, 2).reshape(2, 64, 4, 32)
        mixed = F.scaled_dot_product_attention(both[0], both[1], both[0])
        return torch.tanh(mixed) * 0.5 + torch.sigmoid(mixed)


def get_inputs():
    return [torch.randn(4, 64, 32)]


def get_init_inputs():
    return [32]
