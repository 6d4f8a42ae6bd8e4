import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, input_size, hidden_size):
        super(Model, self).__init__()
        self.gru = nn.GRUCell(input_size, hidden_size)

    def forward(self, x, h):
        return self.gru(x, h)


def get_inputs():
    return [torch.randn(50, 64), torch.randn(50, 72)]


def get_init_inputs():
    return [64, 72]
