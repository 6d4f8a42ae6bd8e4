import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Softmax of the edges of each node, which come in order."""

    def forward(self, score, node):
        n = 20
        top = torch.full((n,), float("-inf")).scatter_reduce(0, node, score, "amax")
        e = (score - top[node]).exp()
        return e / torch.zeros(n).index_add(0, node, e)[node]


def get_inputs():
    return [torch.randn(150), torch.randint(0, 20, (150,)).sort()[0]]


def get_init_inputs():
    return []
