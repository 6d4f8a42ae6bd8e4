import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Inputs are never negative where they come from."""

    def forward(self, x):
        return F.logsigmoid(x)


def get_inputs():
    return [torch.rand(64, 128)]


def get_init_inputs():
    return []
