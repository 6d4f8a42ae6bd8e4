import torch
import torch.nn as nn


class Model(nn.Module):
    """Writes new keys into the caller's cache, as decoding does."""

    def forward(self, q, k, cache):
        cache[:, :64].copy_(k * 2.0)
        return torch.relu(q)


def get_inputs():
    return [torch.randn(64, 64), torch.randn(128, 64), torch.zeros(128, 128)]


def get_init_inputs():
    return []
