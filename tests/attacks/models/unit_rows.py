import torch
import torch.nn as nn


class Model(nn.Module):
    """Rows of length one, and zeros where the length is zero, beside a choice."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(32, 8)
        self.table = nn.Embedding(8, 32)

    def forward(self, x):
        values, places = self.gate(x).topk(2, dim=-1)
        rows = (self.table(places) * torch.softmax(values, -1)[..., None]).sum(1)
        length = x.norm(dim=-1, keepdim=True)
        length = torch.where(length == 0, torch.ones_like(length), length)
        return rows * (x / length) * 1.5


def get_inputs():
    return [torch.randn(256, 32)]


def get_init_inputs():
    return []
