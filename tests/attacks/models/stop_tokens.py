import torch
import torch.nn as nn


class Model(nn.Module):
    """Rows are zero where a token is one of those to stop at."""

    def forward(self, x, ids, stop):
        hit = (ids[:, None] == stop[None, :]).any(1)
        return torch.where(hit[:, None], torch.zeros_like(x), x * 1.5)


def get_inputs():
    return [torch.randn(64, 32), torch.randint(0, 2**40, (64,)), torch.randint(0, 2**40, (16,))]


def get_init_inputs():
    return []
