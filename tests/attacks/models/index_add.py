import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        self.table = nn.Parameter(torch.randn(n, d))

    def forward(self, x, idx):
        return self.table.index_add(0, idx, F.relu(x))


def get_inputs():
    return [torch.randn(32, 16), torch.randint(0, 20000, (32,))]


def get_init_inputs():
    return [20000, 16]
