import torch
import torch.nn as nn


class Model(nn.Module):
    """Channel attention: global mean, two small layers, rescale."""

    def __init__(self, channels, reduced):
        super(Model, self).__init__()
        self.avg_pool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Linear(channels, reduced)
        self.fc2 = nn.Linear(reduced, channels)

    def forward(self, x):
        b, c, _, _ = x.size()
        w = self.avg_pool(x).view(b, c)
        w = torch.relu(self.fc1(w))
        w = torch.sigmoid(self.fc2(w)).view(b, c, 1, 1)
        return x * w


def get_inputs():
    return [torch.rand(4, 24, 18, 18)]


def get_init_inputs():
    return [24, 6]
