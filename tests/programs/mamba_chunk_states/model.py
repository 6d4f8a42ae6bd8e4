import torch
import torch.nn as nn


class Model(nn.Module):
    """Decayed sums inside chunks: Y = (C B^T * L) X, the diagonal blocks of a structured state space product."""

    def __init__(self, chunk):
        super(Model, self).__init__()
        self.chunk = chunk

    def forward(self, X, A, B, C):
        b, l, d = X.shape
        n = l // self.chunk
        X = X.view(b, n, self.chunk, d)
        B = B.view(b, n, self.chunk, -1)
        C = C.view(b, n, self.chunk, -1)
        A_cum = torch.cumsum(A.view(b, n, self.chunk), dim=-1)
        diff = A_cum.unsqueeze(-1) - A_cum.unsqueeze(-2)
        mask = torch.tril(torch.ones(self.chunk, self.chunk, dtype=torch.bool))
        L = torch.exp(diff.masked_fill(~mask, float("-inf")))
        scores = torch.matmul(C, B.transpose(-1, -2)) * L
        return torch.matmul(scores, X).view(b, l, d)


def get_inputs():
    return [torch.randn(2, 96, 32), -torch.rand(2, 96) * 0.1, torch.randn(2, 96, 16), torch.randn(2, 96, 16)]


def get_init_inputs():
    return [32]
