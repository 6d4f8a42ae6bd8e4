import torch
import torch.nn as nn


class Model(nn.Module):
    """Softmax attention over 4D tensors, without a mask, keys longer than queries."""

    def __init__(self):
        super(Model, self).__init__()

    def forward(self, q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)


def get_inputs():
    return [torch.randn(2, 2, 64, 64), torch.randn(2, 2, 96, 64), torch.randn(2, 2, 96, 64)]


def get_init_inputs():
    return []
