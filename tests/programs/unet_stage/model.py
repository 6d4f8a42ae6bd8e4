import torch
import torch.nn as nn


class DoubleConv(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1),
            nn.BatchNorm2d(out_channels),
            nn.Softmax(dim=-1),
            nn.Conv2d(out_channels, out_channels, kernel_size=3, padding=1),
            nn.BatchNorm2d(out_channels),
            nn.Softmax(dim=-1),
        )

    def forward(self, x):
        return self.double_conv(x)


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, features):
        super(Model, self).__init__()
        self.encoder = DoubleConv(in_channels, features)
        self.pool = nn.MaxPool2d(kernel_size=2, stride=2)
        self.bottleneck = DoubleConv(features, features * 2)
        self.upconv = nn.ConvTranspose2d(features * 2, features, kernel_size=2, stride=2)
        self.decoder = DoubleConv(features * 2, features)
        self.final_conv = nn.Conv2d(features, out_channels, kernel_size=1)

    def forward(self, x):
        enc = self.encoder(x)
        mid = self.bottleneck(self.pool(enc))
        dec = torch.cat((self.upconv(mid), enc), dim=1)
        return self.final_conv(self.decoder(dec))


def get_inputs():
    return [torch.rand(2, 3, 16, 24)]


def get_init_inputs():
    return [3, 4, 6]
