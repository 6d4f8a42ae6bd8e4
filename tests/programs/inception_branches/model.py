import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_channels, c1, c3r, c3, c5r, c5, pool_proj):
        super(Model, self).__init__()
        self.branch1x1 = nn.Conv2d(in_channels, c1, kernel_size=1)
        self.branch3x3 = nn.Sequential(
            nn.Conv2d(in_channels, c3r, kernel_size=1), nn.Conv2d(c3r, c3, kernel_size=3, padding=1)
        )
        self.branch5x5 = nn.Sequential(
            nn.Conv2d(in_channels, c5r, kernel_size=1), nn.Conv2d(c5r, c5, kernel_size=5, padding=2)
        )
        self.branch_pool = nn.Sequential(
            nn.MaxPool2d(kernel_size=3, stride=1, padding=1), nn.Conv2d(in_channels, pool_proj, kernel_size=1)
        )

    def forward(self, x):
        outputs = [self.branch1x1(x), self.branch3x3(x), self.branch5x5(x), self.branch_pool(x)]
        return torch.relu(torch.cat(outputs, 1))


def get_inputs():
    return [torch.rand(2, 12, 16, 16)]


def get_init_inputs():
    return [12, 8, 6, 10, 4, 6, 5]
