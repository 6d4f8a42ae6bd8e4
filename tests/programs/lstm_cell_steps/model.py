import torch
import torch.nn as nn


class Model(nn.Module):
    """An LSTM unrolled by hand over a short sequence."""

    def __init__(self, input_size, hidden_size):
        super(Model, self).__init__()
        self.cell = nn.LSTMCell(input_size, hidden_size)
        self.hidden_size = hidden_size

    def forward(self, x):
        h = torch.zeros(x.size(0), self.hidden_size, dtype=x.dtype, device=x.device)
        c = torch.zeros(x.size(0), self.hidden_size, dtype=x.dtype, device=x.device)
        for t in range(x.size(1)):
            h, c = self.cell(x[:, t], (h, c))
        return h


def get_inputs():
    return [torch.randn(12, 6, 40)]


def get_init_inputs():
    return [40, 48]
