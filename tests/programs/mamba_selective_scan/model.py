import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """The recurrence of a selective state space model, step by step."""

    def __init__(self, d_inner, d_state):
        super(Model, self).__init__()
        self.A_log = nn.Parameter(torch.log(torch.arange(1, d_state + 1).float()).repeat(d_inner, 1))
        self.D = nn.Parameter(torch.ones(d_inner))

    def forward(self, u, delta, B, C):
        A = -torch.exp(self.A_log)
        delta = F.softplus(delta)
        state = torch.zeros(u.size(0), u.size(2), A.size(1), dtype=u.dtype, device=u.device)
        outputs = []
        for t in range(u.size(1)):
            decay = torch.exp(delta[:, t].unsqueeze(-1) * A)
            state = decay * state + (delta[:, t] * u[:, t]).unsqueeze(-1) * B[:, t].unsqueeze(1)
            outputs.append((state * C[:, t].unsqueeze(1)).sum(-1) + self.D * u[:, t])
        return torch.stack(outputs, dim=1)


def get_inputs():
    return [torch.randn(2, 16, 48), torch.randn(2, 16, 48), torch.randn(2, 16, 8), torch.randn(2, 16, 8)]


def get_init_inputs():
    return [48, 8]
