"""A layer that keeps its weight's rows short: each call changes the parameter."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features, features))

    def forward(self, x):
        self.weight.data = torch.renorm(self.weight.data, p=2, dim=0, maxnorm=1.0)
        return torch.relu(F.linear(x, self.weight)) * 0.5


def get_inputs():
    return [torch.randn(16, 48)]


def get_init_inputs():
    return [48]
