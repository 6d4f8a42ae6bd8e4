import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A linear layer with int8 weights and zero points, as quantisers store it."""

    def __init__(self, n, k):
        super().__init__()
        self.register_buffer("qweight", torch.randint(-127, 128, (n, k), dtype=torch.int8))
        self.register_buffer("zeros", torch.zeros(n, 1, dtype=torch.int8))
        self.register_buffer("scales", torch.rand(n, 1) * 0.01)

    def forward(self, x):
        w = (self.qweight.float() - self.zeros.float()) * self.scales
        return F.relu(x @ w.t())


def get_inputs():
    return [torch.randn(64, 128)]


def get_init_inputs():
    return [128, 128]
