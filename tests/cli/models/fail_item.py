import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x * x.max().item(), -1)


def get_inputs():
    return [torch.randn(64, 256)]


def get_init_inputs():
    return []
