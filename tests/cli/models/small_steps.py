"""Steps on a state of few elements: what they cost is their number."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        state = torch.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            state = torch.tanh(0.5 * state + x[:, t])
        return state


def get_inputs():
    return [torch.randn(2, 6, 32)]


def get_init_inputs():
    return []
