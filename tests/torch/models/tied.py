import torch
import torch.nn as nn


class Model(nn.Module):
    """One weight under two names, an embedding on integers, inputs in a nested list, a boolean mask."""

    def __init__(self, words=50, width=24):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.out = nn.Linear(width, words, bias=False)
        self.out.weight = self.embed.weight
        self.unused = nn.Linear(2, 2)

    def forward(self, tokens, extra):
        first, mask = extra
        h = self.embed(tokens) + first
        h = h.masked_fill(mask[..., None], 0.0)
        return self.out(h)


def get_inputs():
    return [torch.randint(0, 50, (4, 7)), [torch.randn(4, 7, 24), torch.rand(4, 7) > 0.5]]


def get_init_inputs():
    return []
