import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """No row is compared with itself."""

    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(64, 32)

    def forward(self, x):
        z = F.normalize(self.proj(x), dim=-1)
        own = torch.eye(x.shape[0], dtype=torch.bool)
        return (z @ z.t() * 1.5).masked_fill(own, -9e15)


def get_inputs():
    return [torch.randn(64, 64)]


def get_init_inputs():
    return []
