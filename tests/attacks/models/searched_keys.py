import torch
import torch.nn as nn


class Model(nn.Module):
    """Where keys would be inserted."""

    def forward(self, keys, q):
        return torch.searchsorted(keys, q, right=True), q.float() * 1.5


def get_inputs():
    return [torch.randint(0, 2**40, (128,)).sort()[0], torch.randint(0, 2**40, (64,))]


def get_init_inputs():
    return []
