import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Cross-entropy, which leaves out rows with the label -100."""

    def __init__(self, features, classes):
        super().__init__()
        self.linear = nn.Linear(features, classes)

    def forward(self, x, labels):
        return F.cross_entropy(self.linear(F.relu(x)), labels)


def get_inputs():
    return [torch.randn(256, 128), torch.randint(0, 1000, (256,))]


def get_init_inputs():
    return [128, 1000]
