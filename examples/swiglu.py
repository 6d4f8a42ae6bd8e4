"""The gate of a SwiGLU feed-forward block: the halves of one projection, SiLU on the first, multiplied."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        gate, up = x.chunk(2, dim=-1)
        return F.silu(gate) * up


def get_inputs():
    return [torch.randn(2048, 2 * 2816)]


def get_init_inputs():
    return []
