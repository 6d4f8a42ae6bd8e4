import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Scaled dot-product attention with a causal mask."""

    def __init__(self):
        super(Model, self).__init__()

    def forward(self, Q, K, V):
        scale = 1.0 / math.sqrt(Q.shape[-1])
        att = torch.matmul(Q, K.transpose(-2, -1)) * scale
        L = Q.shape[-2]
        mask = torch.tril(torch.ones(L, L, dtype=torch.bool))
        att = att.masked_fill(~mask, float("-inf"))
        att = F.softmax(att, dim=-1)
        return torch.matmul(att, V)


def get_inputs():
    shape = (2, 3, 128, 32)
    return [torch.randn(*shape), torch.randn(*shape), torch.randn(*shape)]


def get_init_inputs():
    return []
