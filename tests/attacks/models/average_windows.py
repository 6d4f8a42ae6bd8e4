import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Average pooling with padding that does not count, then a local response norm."""

    def forward(self, x):
        y = F.avg_pool2d(x, 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False)
        return F.local_response_norm(y, 5, alpha=1e-2, beta=0.75, k=2.0)


def get_inputs():
    return [torch.randn(4, 12, 15, 18)]


def get_init_inputs():
    return []
