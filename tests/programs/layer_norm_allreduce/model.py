import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, normalized_shape: tuple):
        super(Model, self).__init__()
        self.ln = nn.LayerNorm(normalized_shape=normalized_shape)

    def forward(self, x):
        return self.ln(x)


features, dim1, dim2 = 8, 24, 20


def get_inputs():
    return [torch.randn(12, features, dim1, dim2)]


def get_init_inputs():
    return [(features, dim1, dim2)]
