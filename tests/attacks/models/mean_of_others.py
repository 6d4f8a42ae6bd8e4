import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Mean of features with the same label; a sample's own features count only where no other has the label."""

    def forward(self, features, labels):
        n = features.shape[0]
        same = (labels[:, None] == labels[None, :]).float()
        others = same - torch.eye(n)
        count = others.sum(1, keepdim=True)
        mean = (others @ features) / count.clamp(min=1)
        return torch.where(count > 0, mean, features)


def get_inputs():
    return [torch.randn(256, 32), torch.randint(0, 8, (256,))]


def get_init_inputs():
    return []
