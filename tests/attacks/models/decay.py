import torch
import torch.nn as nn


class Model(nn.Module):
    """A gated residual block: gain sqrt(1 - decay^2) as in an LRU, and a layer scale of 1e-6."""

    def __init__(self, d):
        super().__init__()
        self.decay = nn.Parameter(0.8 * torch.ones(d))
        self.fc = nn.Linear(d, d)
        self.gamma = nn.Parameter(1e-6 * torch.ones(d))

    def forward(self, x):
        s = torch.sqrt(1 - self.decay**2)
        return s * x + 0.5 * self.gamma * self.fc(x)


def get_inputs():
    return [torch.randn(64, 256)]


def get_init_inputs():
    return [256]
