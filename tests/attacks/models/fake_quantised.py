import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Weights and inputs rounded to eight bits, each by its largest magnitude."""

    def __init__(self, n, m):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(m, n) * n ** -0.5)

    def forward(self, x):
        def rounded(t):
            scale = t.abs().amax(-1, keepdim=True).clamp(min=1e-8) / 127
            return (t / scale).round().clamp(-128, 127) * scale

        return rounded(x) @ rounded(self.weight).t()


def get_inputs():
    return [torch.randn(64, 96)]


def get_init_inputs():
    return [96, 80]
