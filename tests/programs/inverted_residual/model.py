import torch
import torch.nn as nn


class Model(nn.Module):
    """Expand, depthwise, project; ReLU6 between; residual at the end."""

    def __init__(self, channels, expand_ratio):
        super(Model, self).__init__()
        hidden = channels * expand_ratio
        self.expand = nn.Conv2d(channels, hidden, 1, bias=False)
        self.depthwise = nn.Conv2d(hidden, hidden, 3, padding=1, groups=hidden, bias=False)
        self.project = nn.Conv2d(hidden, channels, 1, bias=False)
        self.act = nn.ReLU6()

    def forward(self, x):
        y = self.act(self.expand(x))
        y = self.act(self.depthwise(y))
        return x + self.project(y)


def get_inputs():
    return [torch.randn(2, 12, 15, 17)]


def get_init_inputs():
    return [12, 4]
