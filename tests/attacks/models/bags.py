import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """The mean of each bag of rows; bags are told by where they begin, and may be empty."""

    def forward(self, x, offsets):
        sums = F.pad(torch.cumsum(F.relu(x), 0), (0, 0, 1, 0))
        counts = (offsets[1:] - offsets[:-1]).clamp(min=1)
        return (sums[offsets[1:]] - sums[offsets[:-1]]) / counts[:, None]


def get_inputs():
    inner = (torch.randperm(1023)[:31] + 1).sort().values
    return [torch.randn(1024, 64), torch.cat([torch.tensor([0]), inner, torch.tensor([1024])])]


def get_init_inputs():
    return []
