import torch
import torch.nn as nn


class Model(nn.Module):
    """Writes into its input, into views, through masks and indices; returns a view of an input. No parameters."""

    def forward(self, x, indices):
        x[0] = 1.0
        x.mul_(2)
        y = torch.zeros_like(x)
        y[:, 1:3] += x[:, 1:3]
        y[indices] = 7
        y.index_add_(0, indices, x[: indices.shape[0]])
        y[y > 5] = -1.0
        nn.functional.relu(y[2:], inplace=True)
        return [y, x.t(), y.sum() > 0, x[1]]


def get_inputs():
    return [torch.randn(6, 5), torch.tensor([1, 3])]


def get_init_inputs():
    return []
