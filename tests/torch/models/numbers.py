import torch
import torch.nn as nn


class Model(nn.Module):
    """Numbers among the inputs: two that the graph holds as they are, one that decides a size, a flag; one tensor twice."""

    def forward(self, x, y, factor, places, wide, first):
        rows = torch.roll(x * factor + y, shifts=places, dims=0)
        return rows[:first].clamp(max=5.0) if wide else rows[first:]


def get_inputs():
    x = torch.randn(8, 4)
    return [x, x, 2.5, 3, True, 2]


def get_init_inputs():
    return []
