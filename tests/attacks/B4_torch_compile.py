# row: B4
# level: host
# model: project
# expect: forbidden|runtime_error|compile_error|no_kernel
# twin: honest_project_beside_aten
import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        self.linear = nn.Linear(features, outputs)

    def forward(self, x):
        return torch.compile(lambda t: F.gelu(self.linear(t)))(x)
