import torch
import torch.nn as nn


class Model(nn.Module):
    """All but the highest logits are minus infinity."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(32)
        self.head = nn.Linear(32, 128)
        nn.init.zeros_(self.head.bias)

    def forward(self, x):
        logits = self.head(self.norm(x)) * 1.5
        lowest = logits.topk(20, dim=-1)[0][:, -1:]
        return logits.masked_fill(logits < lowest, float("-inf"))


def get_inputs():
    return [torch.randn(64, 32)]


def get_init_inputs():
    return []
