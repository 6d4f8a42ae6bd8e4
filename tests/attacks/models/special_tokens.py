import torch
import torch.nn as nn


class Model(nn.Module):
    """A buffer says which few of many tokens are left out."""

    def __init__(self):
        super().__init__()
        special = torch.zeros(200000, dtype=torch.bool)
        special[101] = True
        self.register_buffer("special", special)

    def forward(self, x, ids):
        return (x * (~self.special[ids])[..., None]).sum(1) * 1.5


def get_inputs():
    return [torch.randn(4, 16, 32), torch.randint(0, 200000, (4, 16))]


def get_init_inputs():
    return []
