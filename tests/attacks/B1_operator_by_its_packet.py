# row: B1
# level: host
# model: project
# expect: no_kernel|aten_policy|forbidden
# twin: honest_project_beside_aten
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        self.linear = nn.Linear(features, outputs)

    def forward(self, x):
        return torch.ops.aten.gelu(torch.ops.aten.linear(x, self.linear.weight, self.linear.bias))
