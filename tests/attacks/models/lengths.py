import torch
import torch.nn as nn


class Model(nn.Module):
    """The mask of each row by its length, beside the rectified features."""

    def forward(self, x, lengths):
        mask = torch.arange(x.shape[1])[None, :] < lengths[:, None]
        return torch.relu(x), mask


def get_inputs():
    return [torch.randn(64, 128), torch.arange(64) * 37 % 127 + 1]


def get_init_inputs():
    return []
