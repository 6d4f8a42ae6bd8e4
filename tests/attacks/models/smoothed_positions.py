import torch
import torch.nn as nn


class Model(nn.Module):
    """Mixes positions by how near they are to each other; they are the same in each call."""

    def forward(self, x, position):
        near = torch.exp(-(position[None] - position[:, None]).float().square() / 50.0)
        near = near @ near @ near
        return x @ (near / near.sum(-1, keepdim=True))


def get_inputs():
    return [torch.randn(64, 512), (torch.arange(512) * 7) % 512]


def get_init_inputs():
    return []
