import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Soft assignment of features to clusters and normalised residual sums."""

    def __init__(self, cluster_size, feature_size):
        super(Model, self).__init__()
        self.cluster_size, self.feature_size = cluster_size, feature_size
        init_sc = 1 / math.sqrt(feature_size)
        self.clusters = nn.Parameter(init_sc * torch.randn(feature_size, cluster_size))
        self.clusters2 = nn.Parameter(init_sc * torch.randn(1, feature_size, cluster_size))

    def forward(self, x):
        B, N, D = x.shape
        assignment = F.softmax(torch.matmul(x.view(-1, D), self.clusters), dim=1).view(B, N, self.cluster_size)
        a = assignment.sum(dim=1, keepdim=True) * self.clusters2
        vlad = torch.matmul(assignment.transpose(1, 2), x).transpose(1, 2) - a
        vlad = F.normalize(vlad)
        return F.normalize(vlad.reshape(-1, self.cluster_size * D))


def get_inputs():
    return [torch.randn(4, 40, 64)]


def get_init_inputs():
    return [16, 64]
