import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A chain of pointwise functions over a 5D tensor."""

    def __init__(self, alpha: float = 1.0, slope: float = 0.2):
        super(Model, self).__init__()
        self.alpha = alpha
        self.slope = slope

    def forward(self, x):
        x = F.elu(x, alpha=self.alpha)
        x = F.softplus(x)
        x = F.leaky_relu(x - 0.5, negative_slope=self.slope)
        return F.selu(x)


def get_inputs():
    return [torch.randn(2, 4, 6, 10, 12)]


def get_init_inputs():
    return [0.8, 0.1]
