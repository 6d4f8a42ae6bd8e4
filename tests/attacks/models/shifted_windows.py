import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Attention in windows that are shifted, with a bias from a table by distance."""

    def __init__(self, heads):
        super().__init__()
        self.table = nn.Parameter(torch.randn(15, heads))

    def forward(self, x):
        b, n, c = x.shape
        w, h = 8, self.table.shape[1]
        y = x.roll(-4, 1).view(b, n // w, w, h, c // h).transpose(2, 3)
        i = torch.arange(w)
        bias = self.table[i[:, None] - i[None, :] + w - 1].permute(2, 0, 1)
        s = y @ y.transpose(-1, -2) * (c // h) ** -0.5 + bias
        last = torch.arange(n // w)[:, None, None] == n // w - 1
        apart = (i[:, None] < 4) != (i[None, :] < 4)
        s = s.masked_fill((last & apart)[None, :, None], -100.0)
        return (s.softmax(-1) @ y).transpose(2, 3).reshape(b, n, c).roll(4, 1)


def get_inputs():
    return [torch.randn(3, 40, 24)]


def get_init_inputs():
    return [3]
