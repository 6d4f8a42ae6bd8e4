import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.rand(64, 96), torch.rand(96, 80)]


def get_init_inputs():
    return []
