import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, margin=1.0):
        super(Model, self).__init__()
        self.loss_fn = torch.nn.TripletMarginLoss(margin=margin)

    def forward(self, anchor, positive, negative):
        return self.loss_fn(anchor, positive, negative)


def get_inputs():
    scale = torch.rand(1)
    return [torch.rand(100, 128) * scale, torch.rand(100, 128), torch.rand(100, 128)]


def get_init_inputs():
    return [1.0]
