import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = torch.where(torch.isinf(x), torch.zeros_like(x), x)
        return F.relu(x) * 2


def get_inputs():
    return [torch.randn(512, 512)]


def get_init_inputs():
    return []
