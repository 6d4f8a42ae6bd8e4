import torch
import torch.nn as nn


class Model(nn.Module):
    """The mean of as many rows as each sequence has."""

    def forward(self, x, lengths):
        mask = torch.arange(x.shape[1], device=x.device)[None] < lengths[:, None]
        return (torch.relu(x) * mask[..., None]).sum(1) / lengths.clamp(min=1)[:, None]


def get_inputs():
    return [torch.randn(16, 128, 64), torch.randint(1, 129, (16,))]


def get_init_inputs():
    return []
