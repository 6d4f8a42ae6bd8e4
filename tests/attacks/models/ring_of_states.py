import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """The mean of the last eight inputs, kept in a ring."""

    def __init__(self, n):
        super().__init__()
        self.register_buffer("ring", torch.zeros(8, n))
        self.register_buffer("count", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.ring.index_copy_(0, (self.count % 8).reshape(1), x.mean(0, keepdim=True))
        self.count.add_(1)
        return x + self.ring.sum(0) / torch.clamp(self.count, max=8)


def get_inputs():
    return [torch.randn(32, 48)]


def get_init_inputs():
    return [48]
