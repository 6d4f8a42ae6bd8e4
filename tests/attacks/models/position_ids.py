import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, v, t, d):
        super().__init__()
        self.tok = nn.Embedding(v, d)
        self.pos = nn.Embedding(t, d)
        self.norm = nn.LayerNorm(d)
        self.register_buffer("position_ids", torch.arange(t).expand((1, -1)))

    def forward(self, ids):
        h = self.tok(ids) + self.pos(self.position_ids[:, : ids.shape[1]])
        return self.norm(h)


def get_inputs():
    return [torch.randint(0, 1000, (4, 128))]


def get_init_inputs():
    return [1000, 128, 256]
