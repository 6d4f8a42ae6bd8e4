import torch
import torch.nn as nn


class Model(nn.Module):
    """Linear, sigmoid, scaling, residual."""

    def __init__(self, input_size, hidden_size, scaling_factor):
        super(Model, self).__init__()
        self.gemm = nn.Linear(input_size, hidden_size)
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = self.gemm(x)
        original_x = x
        x = torch.sigmoid(x)
        x = x * self.scaling_factor
        x = x + original_x
        return x


def get_inputs():
    return [torch.rand(100, 200)]


def get_init_inputs():
    return [200, 136, 2.0]
