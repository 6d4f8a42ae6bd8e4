import torch
import torch.nn as nn


class Model(nn.Module):
    """Batch statistics, running statistics that change, dropout, a random op, tuple and dict outputs, a constant."""

    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.norm = nn.BatchNorm1d(features)
        self.drop = nn.Dropout(0.3)
        self.scale = nn.Parameter(torch.randn(features))
        self.table = torch.arange(features).float()
        self.register_buffer("mask", torch.ones(features), persistent=False)

    def forward(self, x, k, factor):
        x = self.norm(self.linear(x)) * self.scale * self.mask
        x = self.drop(x)
        x += self.table
        x = x + torch.randn_like(x) * factor
        x = x + torch.tensor([0.5])
        a, b = x.split([3, x.shape[1] - 3], dim=1)
        return x, {"a": a, "index": torch.argmax(b, dim=1) + k}, (x[:, None], None), 3


def get_inputs():
    return [torch.rand(8, 16), torch.randint(0, 3, (8,)), 2.0]


def get_init_inputs():
    return [16]
