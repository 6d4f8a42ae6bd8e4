import torch
import torch.nn as nn


class Model(nn.Module):
    """A layer of a binary network: signs of activations, scaled by their mean size."""

    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d, d))

    def forward(self, x):
        scale = x.abs().mean(1, keepdim=True).expand(-1, self.weight.shape[0]).contiguous()
        return (torch.sign(x) @ torch.sign(self.weight).t()) * scale


def get_inputs():
    return [torch.randn(512, 512)]


def get_init_inputs():
    return [512]
