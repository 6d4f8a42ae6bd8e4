import torch
import torch.nn as nn


class Turned(nn.Module):
    """Pairs of columns turned by angles in a table that is not saved."""

    def __init__(self, length, width):
        super().__init__()
        angles = torch.outer(torch.arange(length).float(), 1.0 / 100.0 ** (torch.arange(0, width, 2).float() / width))
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        self.mask = torch.tril(torch.ones(length, length))

    def forward(self, x):
        even, odd = x[..., ::2], x[..., 1::2]
        x = torch.cat([even * self.cos - odd * self.sin, even * self.sin + odd * self.cos], -1)
        return torch.softmax((x @ x.transpose(-1, -2)).masked_fill(self.mask == 0, -1e9), -1)


class Model(nn.Module):
    def __init__(self, length, width): super().__init__(); self.turned = Turned(length, width)

    def forward(self, x, steps):
        mixed = self.turned(x) * (steps // 3 + 1)
        return mixed, (x[..., None, :2] * torch.tensor([[1.0, 0.5], [-0.5, 1.0], [0.25, 2.0]])).sum(-1).tanh()


def get_inputs():
    return [torch.randn(4, 64, 32), torch.randint(0, 100, (64,))]


def get_init_inputs():
    return [64, 32]
