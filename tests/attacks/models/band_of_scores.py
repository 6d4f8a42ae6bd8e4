import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Scores of what is near."""

    def __init__(self):
        super().__init__()
        self.q = nn.Linear(32, 32)
        self.k = nn.Linear(32, 32)

    def forward(self, x):
        at = torch.arange(64)
        far = (at[:, None] - at[None, :]).abs() > 4
        s = self.q(x) @ self.k(x).transpose(-1, -2) * 0.125
        return s.masked_fill(far, torch.finfo(s.dtype).min)


def get_inputs():
    return [torch.randn(2, 64, 32)]


def get_init_inputs():
    return []
