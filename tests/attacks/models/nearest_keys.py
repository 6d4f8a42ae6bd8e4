import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """The keys that point most nearly the same way."""

    def __init__(self):
        super().__init__()
        self.keys = nn.Parameter(torch.randn(32, 64))

    def forward(self, x):
        scores = F.normalize(x, dim=-1) @ F.normalize(self.keys, dim=-1).t()
        best, which = torch.topk(scores, 4, dim=-1)
        return best * 1.5, which


def get_inputs():
    return [torch.randn(64, 64)]


def get_init_inputs():
    return []
