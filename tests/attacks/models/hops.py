import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Three hops over a fixed graph, which comes as an input."""

    def forward(self, x, adj):
        hops = adj @ adj @ adj
        return F.relu(hops @ x)


def get_inputs():
    i = torch.arange(768)
    adj = 1.0 / (1.0 + (i[:, None] - i[None, :]).abs().float())
    return [torch.randn(768, 64), adj]


def get_init_inputs():
    return []
