import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """New keys are written into a cache at a position, which then is read up to there."""

    def forward(self, q, k, cache, position):
        cache.index_copy_(1, position.reshape(1), k[:, None])
        t = torch.arange(cache.shape[1])
        s = torch.einsum("bd,btd->bt", q, cache) * 0.25
        p = s.masked_fill(t > position, float("-inf")).softmax(-1)
        return torch.einsum("bt,btd->bd", p, cache)


def get_inputs():
    return [torch.randn(12, 16), torch.randn(12, 16), torch.randn(12, 33, 16), torch.tensor(20)]


def get_init_inputs():
    return []
