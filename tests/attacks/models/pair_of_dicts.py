import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Statistics in a dictionary, beside the normalised input."""

    def forward(self, x):
        mean, std = x.mean(0), x.std(0)
        return {"y": (x - mean) / (std + 1e-5), "stats": (mean, std)}


def get_inputs():
    return [torch.randn(80, 24)]


def get_init_inputs():
    return []
