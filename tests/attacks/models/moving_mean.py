import torch
import torch.nn as nn


class Model(nn.Module):
    """Tracks a mean that its outputs use, and a covariance that they do not."""

    def __init__(self, n):
        super().__init__()
        self.register_buffer("center", torch.zeros(n))
        self.register_buffer("covariance", torch.zeros(n, n))

    def forward(self, x):
        self.center.mul_(0.9).add_(x.mean(0) * 0.1)
        self.covariance.mul_(0.9).add_(x.t() @ x, alpha=0.1)
        return torch.relu(x - self.center)


def get_inputs():
    return [torch.randn(128, 64)]


def get_init_inputs():
    return [64]
