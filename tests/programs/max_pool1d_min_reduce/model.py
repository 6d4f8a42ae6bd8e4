import torch
import torch.nn as nn


class Model(nn.Module):
    """Max pooling in one dimension, then the least value over channels."""

    def __init__(self, kernel_size, stride):
        super(Model, self).__init__()
        self.pool = nn.MaxPool1d(kernel_size, stride=stride)

    def forward(self, x):
        return torch.min(self.pool(x), dim=1)[0]


def get_inputs():
    return [torch.randn(6, 32, 130)]


def get_init_inputs():
    return [4, 3]
