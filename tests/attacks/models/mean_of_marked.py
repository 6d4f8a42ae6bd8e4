"""The mean of what is not padding; zero where all is."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, tokens):
        marked = (tokens != 0).to(x.dtype)
        return (x * marked[..., None]).sum(0) / marked.sum().clamp(min=1) * 1.5


def get_inputs():
    return [torch.randn(64, 16), torch.randint(0, 100, (64,))]


def get_init_inputs():
    return []
