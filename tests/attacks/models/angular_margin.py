import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Logits of angles; that of the true class is turned by a margin."""

    def __init__(self, n, classes):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(classes, n))

    def forward(self, x, label):
        cosine = F.linear(F.normalize(x), F.normalize(self.weight))
        sine = torch.sqrt((1.0 - cosine.square()).clamp(0, 1))
        turned = cosine * 0.8775825618903728 - sine * 0.479425538604203
        turned = torch.where(cosine > -0.8775825618903728, turned, cosine - 0.2397)
        return 30.0 * torch.where(F.one_hot(label, self.weight.shape[0]).bool(), turned, cosine)


def get_inputs():
    return [torch.randn(64, 32), torch.randint(0, 10, (64,))]


def get_init_inputs():
    return [32, 10]
