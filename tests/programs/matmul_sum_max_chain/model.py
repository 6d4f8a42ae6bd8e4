import torch
import torch.nn as nn


class Model(nn.Module):
    """Linear, max pooling over pairs of features, sum, scale."""

    def __init__(self, in_features, out_features, kernel_size, scale_factor):
        super(Model, self).__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.max_pool = nn.MaxPool1d(kernel_size)
        self.scale_factor = scale_factor

    def forward(self, x):
        x = self.matmul(x)
        x = self.max_pool(x.unsqueeze(1)).squeeze(1)
        x = torch.sum(x, dim=1)
        x = x * self.scale_factor
        return x


def get_inputs():
    return [torch.rand(80, 96)]


def get_init_inputs():
    return [96, 144, 2, 0.5]
