import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Convolutions, pooling with indices, channels-last weights, einsum, interpolation, a block without gradients."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1).to(memory_format=torch.channels_last)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.norm = nn.GroupNorm(2, 8)
        self.bn = nn.BatchNorm2d(8)

    def forward(self, x):
        x = F.gelu(self.norm(self.bn(self.conv(x))), approximate="tanh")
        with torch.no_grad():
            pooled, indices = F.max_pool2d(x, 2, return_indices=True)
        up = self.up(pooled)
        up = F.interpolate(up, scale_factor=0.5, mode="bilinear")
        score = torch.einsum("bchw,bdhw->bcd", up, pooled)
        values, order = torch.topk(score, 3, dim=-1)
        return score.to(torch.bfloat16).float().logsumexp(dim=2), indices, values, order, F.dropout2d(pooled, 0.5)


def get_inputs():
    return [torch.randn(2, 3, 16, 16)]


def get_init_inputs():
    return []
