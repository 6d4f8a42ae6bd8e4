import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Depthwise causal convolution with SiLU, the first stage of a state space block."""

    def __init__(self, d_inner, d_conv):
        super(Model, self).__init__()
        self.conv1d = nn.Conv1d(d_inner, d_inner, d_conv, groups=d_inner, padding=d_conv - 1)

    def forward(self, x):
        L = x.shape[1]
        y = self.conv1d(x.transpose(1, 2))[..., :L]
        return F.silu(y).transpose(1, 2)


def get_inputs():
    return [torch.randn(2, 50, 72)]


def get_init_inputs():
    return [72, 4]
