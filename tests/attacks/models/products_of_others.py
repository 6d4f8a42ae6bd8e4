import torch
import torch.nn as nn


class Model(nn.Module):
    """For each element the product of the others of its row."""

    def forward(self, x):
        rows = [torch.cat([x[:, :i], x[:, i + 1 :]], 1).prod(1) for i in range(x.shape[1])]
        return torch.stack(rows, 1)


def get_inputs():
    return [torch.rand(64, 8) + 0.5]


def get_init_inputs():
    return []
