import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Triplet loss with the hardest examples of a batch."""

    def forward(self, x, label):
        d = torch.cdist(x, x)
        same = label[:, None] == label[None, :]
        far = d.masked_fill(~same, 0.0).amax(1)
        near = d.masked_fill(same, float("inf")).amin(1)
        return F.relu(far - near + 0.3).mean()


def get_inputs():
    return [torch.randn(96, 32), torch.randint(0, 6, (96,))]


def get_init_inputs():
    return []
