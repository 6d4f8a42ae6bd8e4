import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """One step of a decoder with a cache of keys and values."""

    def __init__(self, n, d):
        super().__init__()
        self.qkv = nn.Linear(d, 3 * d)
        self.register_buffer("keys", torch.zeros(n, 16, d))
        self.register_buffer("values", torch.zeros(n, 16, d))
        self.register_buffer("pos", torch.zeros(1, dtype=torch.long))

    def forward(self, x):
        q, k, v = self.qkv(F.relu(x)).chunk(3, -1)
        self.keys.index_copy_(0, self.pos, k[None])
        self.values.index_copy_(0, self.pos, v[None])
        s = (self.keys * q).sum(-1) / q.shape[-1] ** 0.5
        hidden = torch.arange(s.shape[0], device=x.device)[:, None] > self.pos
        p = F.softmax(s.masked_fill(hidden, float("-inf")), dim=0)
        self.pos += 1
        return (p[..., None] * self.values).sum(0)


def get_inputs():
    return [torch.randn(16, 64)]


def get_init_inputs():
    return [64, 64]
