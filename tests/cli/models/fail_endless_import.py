import torch.nn as nn

while True:
    pass


class Model(nn.Module):
    def forward(self, x):
        return x
