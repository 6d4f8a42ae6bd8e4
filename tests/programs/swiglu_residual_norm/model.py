import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A gated feed-forward block with RMS norm before it and a residual after it."""

    def __init__(self, dim, hidden):
        super(Model, self).__init__()
        self.norm_weight = nn.Parameter(torch.ones(dim))
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.norm_weight
        return x + self.w2(F.silu(self.w1(y)) * self.w3(y))


def get_inputs():
    return [torch.randn(2, 40, 64)]


def get_init_inputs():
    return [64, 160]
