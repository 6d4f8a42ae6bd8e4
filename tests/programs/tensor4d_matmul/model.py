import torch
import torch.nn as nn


class Model(nn.Module):
    """4D tensor times matrix over the last axis."""

    def __init__(self):
        super(Model, self).__init__()

    def forward(self, A, B):
        return torch.einsum("bijl,lk->bijk", A, B)


b, i, j, l, k = 2, 6, 10, 48, 56


def get_inputs():
    return [torch.rand(b, i, j, l), torch.rand(l, k)]


def get_init_inputs():
    return []
