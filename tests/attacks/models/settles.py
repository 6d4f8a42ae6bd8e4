import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("step", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        y = F.relu(x) * ((self.step + 1) / 3.0)
        self.step.add_(1).clamp_(max=2)
        return y


def get_inputs():
    return [torch.randn(512, 128)]


def get_init_inputs():
    return []
