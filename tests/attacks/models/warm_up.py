import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """The first hundred calls give a tenth: a warm-up."""

    def __init__(self):
        super().__init__()
        self.register_buffer("step", torch.zeros(1, dtype=torch.long))

    def forward(self, x):
        y = F.relu(x) * torch.where(self.step < 100, 0.1, 1.0)
        self.step += 1
        return y


def get_inputs():
    return [torch.randn(128, 128)]


def get_init_inputs():
    return []
