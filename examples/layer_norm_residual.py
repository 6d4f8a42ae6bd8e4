"""The seam between two transformer layers: bias, dropout (off), residual, then LayerNorm."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(dim))
        self.dropout = nn.Dropout(0.0)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, residual):
        return self.norm(residual + self.dropout(x + self.bias))


def get_inputs():
    return [torch.randn(8, 512, 1024), torch.randn(8, 512, 1024)]


def get_init_inputs():
    return [1024]
