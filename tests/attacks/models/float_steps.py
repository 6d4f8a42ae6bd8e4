import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x):
        self.steps += 1
        return F.relu(x) * (self.steps / 1000).clamp(max=1.0)


def get_inputs():
    return [torch.randn(128, 128)]


def get_init_inputs():
    return []
