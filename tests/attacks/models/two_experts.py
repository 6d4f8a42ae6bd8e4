import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Each row goes to its two best experts."""

    def __init__(self, n, experts):
        super().__init__()
        self.gate = nn.Linear(n, experts, bias=False)
        self.weight = nn.Parameter(torch.randn(experts, n, n) * n ** -0.5)

    def forward(self, x):
        score, which = self.gate(x).softmax(-1).topk(2, -1)
        score = score / score.sum(-1, keepdim=True)
        every = torch.einsum("bn,enm->bem", x, self.weight)
        return (every.gather(1, which[..., None].expand(-1, -1, x.shape[1])) * score[..., None]).sum(1)


def get_inputs():
    return [torch.randn(128, 32), ]


def get_init_inputs():
    return [32, 6]
