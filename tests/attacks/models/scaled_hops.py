import torch
import torch.nn as nn


class Model(nn.Module):
    """Three hops over a fixed graph with weights, which comes as an input."""

    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, near, x):
        return torch.relu(near @ near @ near @ self.linear(x))


def get_inputs():
    i = torch.arange(512)
    near = 1.0 / (1.0 + (i[:, None] - i[None]).abs().float())
    return [near / near.sum(-1, keepdim=True), torch.randn(512, 64)]


def get_init_inputs():
    return [64]
