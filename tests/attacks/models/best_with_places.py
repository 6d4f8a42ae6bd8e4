"""The largest elements of each row with their places, and the largest of each column with its own."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        best, places = torch.topk(x, 4)
        first, place = x.max(0)
        return best * 1.5, places, first, place


def get_inputs():
    return [torch.randn(32, 48)]


def get_init_inputs():
    return []
