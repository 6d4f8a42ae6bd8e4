import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Cross entropy with smoothed labels."""

    def forward(self, logits, target):
        return F.cross_entropy(logits, target, label_smoothing=0.1, ignore_index=3)


def get_inputs():
    return [torch.randn(200, 23), torch.randint(0, 23, (200,))]


def get_init_inputs():
    return []
