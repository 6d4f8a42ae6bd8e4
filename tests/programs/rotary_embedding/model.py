import torch
import torch.nn as nn


class Model(nn.Module):
    """Rotary position embedding applied to queries and keys."""

    def __init__(self, head_dim, max_positions, base):
        super(Model, self).__init__()
        inv_freq = 1.0 / (base ** (torch.arange(0, head_dim, 2).float() / head_dim))
        angles = torch.outer(torch.arange(max_positions).float(), inv_freq)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, q, k):
        L = q.shape[2]
        cos, sin = self.cos[:L], self.sin[:L]

        def rotate(x):
            a, b = x.chunk(2, dim=-1)
            return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)

        return rotate(q), rotate(k)


def get_inputs():
    return [torch.randn(2, 4, 24, 32), torch.randn(2, 4, 24, 32)]


def get_init_inputs():
    return [32, 48, 10000.0]
