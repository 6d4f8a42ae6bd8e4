import torch
import torch.nn as nn


class Model(nn.Module):
    """Several layers of linear, tanh and layer norm; weights in a ParameterList."""

    def __init__(self, dim, depth):
        super(Model, self).__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(dim, dim) / dim**0.5) for _ in range(depth)])
        self.norms = nn.ModuleList([nn.LayerNorm(dim) for _ in range(depth)])

    def forward(self, x):
        for w, norm in zip(self.weights, self.norms):
            x = norm(x + torch.tanh(x @ w))
        return x


def get_inputs():
    return [torch.randn(48, 64)]


def get_init_inputs():
    return [64, 3]
