import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A layer whose rows have a length of their own, and a bilinear form."""

    def __init__(self, n, m):
        super().__init__()
        self.v = nn.Parameter(torch.randn(m, n))
        self.g = nn.Parameter(torch.rand(m) + 0.5)
        self.bilinear = nn.Bilinear(m, m, 6)

    def forward(self, x):
        w = self.g[:, None] * self.v / self.v.norm(dim=1, keepdim=True)
        y = torch.tanh(x @ w.t())
        return self.bilinear(y, y.flip(0))


def get_inputs():
    return [torch.randn(40, 28)]


def get_init_inputs():
    return [28, 20]
