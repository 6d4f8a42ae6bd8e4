import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Pixels at least half of full brightness stay, counted row by row."""

    def forward(self, x):
        bright = x * 255.0 - 0.5 >= 127.0
        return torch.where(bright, x, 0.0), bright.sum(-1)


def get_inputs():
    return [torch.rand(64, 96)]


def get_init_inputs():
    return []
