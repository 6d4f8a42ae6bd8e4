"""Causal multi-head attention written out: projections, scores, mask, softmax, weighted values."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, dim, heads, length):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(dim, dim)
        self.key = nn.Linear(dim, dim)
        self.value = nn.Linear(dim, dim)
        self.register_buffer("mask", torch.tril(torch.ones(length, length)).view(1, 1, length, length))

    def forward(self, x):
        batch, length, dim = x.shape
        head = dim // self.heads
        q = self.query(x).view(batch, length, self.heads, head).transpose(1, 2)
        k = self.key(x).view(batch, length, self.heads, head).transpose(1, 2)
        v = self.value(x).view(batch, length, self.heads, head).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(head)
        scores = scores.masked_fill(self.mask[:, :, :length, :length] == 0, float("-inf"))
        weights = F.softmax(scores, dim=-1)
        return (weights @ v).transpose(1, 2).contiguous().view(batch, length, dim)


def get_inputs():
    return [torch.randn(4, 512, 256)]


def get_init_inputs():
    return [256, 4, 512]
