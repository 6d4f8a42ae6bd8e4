import torch
import torch.nn as nn


class Model(nn.Module):
    """Numbers that are none, in a kernel that has a name for a number of its own, and integers that are known."""

    def forward(self, x):
        y = torch.softmax(x, -1).masked_fill(x < -1, float("nan"))
        z = torch.softmax(x, -1) * (torch.tensor(-7) % torch.tensor(3))
        return y, z, torch.softmax(x, -1) + torch.tensor([1.0, float("nan"), 2.0, float("inf")]).repeat(16)


def get_inputs():
    return [torch.randn(256, 64)]


def get_init_inputs():
    return []
