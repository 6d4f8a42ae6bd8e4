import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """The largest of each row over pairs of columns, and where the first of the least lies."""

    def forward(self, x, w):
        y = x * w
        return y.view(x.shape[0], -1, 2).amax(-1), y.argmin(0), (y > 4.0).all(1).float() + y.amin(1)


def get_inputs():
    return [torch.randn(150, 40), torch.rand(40) + 0.5]


def get_init_inputs():
    return []
